"""Evaluation: played episodes, or estimates from recorded ones."""

import inspect
from typing import Any
from typing import cast

from keras_rl2.basics.arguments import present
from keras_rl2.basics.arguments import refuse_unknown
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.data.team_evaluation import TeamEvaluation
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.offline.offline_evaluation import OfflineEvaluation


def evaluate(agent: Any, x: Any, **settings: Any) -> dict[str, float]:
    """Plays episodes, or estimates their returns from recorded ones."""
    given = present(**settings)
    if isinstance(x, OfflineEvaluation):
        refuse_unknown("`evaluate` of an `OfflineEvaluation`", given, [])
        return x.play(agent)
    if isinstance(x, OfflineDataset):
        refuse_unknown("`evaluate`", given, _names(OfflineEvaluation))
        return OfflineEvaluation(x, **given).play(agent)
    is_team = hasattr(agent, "members")
    kind: Any = TeamEvaluation if is_team else EvaluationDataset
    if isinstance(x, kind):
        if given:
            raise ValueError(
                f"Expected no further arguments with `{kind.__name__}`, "
                f"which already has them. Received: {sorted(given)}"
            )
    else:
        refuse_unknown("`evaluate`", given, _names(kind))
        x = kind(x, **given)
    results: dict[str, float] = cast(Any, x).play(agent)
    return results


def _names(kind: type) -> set[str]:
    """Returns the arguments of a kind of evaluation that users may set."""
    return set(inspect.signature(kind).parameters) - {"env", "offline", "games"}
