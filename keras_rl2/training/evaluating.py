"""Evaluation: played episodes, or estimates from recorded ones."""

import inspect
from typing import Any

from keras_rl2.basics.arguments import present
from keras_rl2.basics.arguments import refuse_unknown
from keras_rl2.data.evaluation import EvaluationDataset
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
    if isinstance(x, EvaluationDataset):
        if given:
            raise ValueError(
                "Expected no further arguments with an `EvaluationDataset`, "
                f"which already has them. Received: {sorted(given)}"
            )
        return x.play(agent)
    refuse_unknown("`evaluate`", given, _names(EvaluationDataset))
    return EvaluationDataset(x, **given).play(agent)


def _names(kind: type) -> set[str]:
    """Returns the arguments of a kind of evaluation that users may set."""
    return set(inspect.signature(kind).parameters) - {"env", "offline"}
