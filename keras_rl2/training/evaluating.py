"""What `evaluate` plays, or estimates."""

import inspect
from typing import Any
from typing import Protocol

from keras_rl2.basics.arguments import check_choice
from keras_rl2.basics.arguments import refuse_unknown
from keras_rl2.data import EvaluationDataset
from keras_rl2.data import OfflineDataset
from keras_rl2.offline.offline_evaluation import EvaluatedAgent
from keras_rl2.offline.offline_evaluation import OfflineEvaluation


class LoadedAgent(EvaluatedAgent, Protocol):
    """An agent whose weights may have been loaded; see `keras_rl2.Agent`."""

    def check_loaded(self) -> None:
        """Refuses weights that were loaded and are not finite."""


def evaluate(
    agent: LoadedAgent,
    x: Any = None,
    verbose: Any = "auto",
    return_dict: Any = True,
    callbacks: Any = None,
    **kwargs: Any,
) -> dict[str, float]:
    """Plays episodes, or estimates from recorded ones what they would give.

    Args:
        agent: `keras_rl2.Agent`. Acts.
        x: As of `Agent.evaluate`. Defaults to `None`.
        verbose: As of Keras; there is nothing to show. Defaults to `"auto"`.
        return_dict: As of Keras; it always is one. Defaults to `True`.
        callbacks: As of Keras; there are no batches. Defaults to `None`.
        **kwargs: Arguments of what is made of `x`.

    Returns:
        dict of numbers.

    Raises:
        ValueError: If an argument cannot be meant.
        TypeError: If one is unknown.
    """
    del return_dict, callbacks
    agent.check_loaded()
    check_choice(verbose=(verbose, ("auto", 0, 1, 2)))
    if isinstance(x, OfflineEvaluation):
        refuse_unknown("`evaluate` of an `OfflineEvaluation`", kwargs, [])
        return x.play(agent)
    if isinstance(x, OfflineDataset):
        refuse_settings("`evaluate`", OfflineEvaluation, kwargs, "offline")
        return OfflineEvaluation(x, **kwargs).play(agent)
    if not isinstance(x, EvaluationDataset):
        refuse_settings("`evaluate`", EvaluationDataset, kwargs, "env")
    results: dict[str, float] = EvaluationDataset.of(x, **kwargs).play(agent)
    return results


def refuse_settings(
    owner: str, kind: type, given: dict[str, Any], *settled: str
) -> None:
    """Refuses arguments that a kind of evaluation does not take.

    Args:
        owner: str. What they were given to.
        kind: class. What is made of them.
        given: dict from names to values.
        *settled: str. Arguments of the class that are not for the user.

    Raises:
        TypeError: If one is unknown.
    """
    names = set(inspect.signature(kind).parameters) - set(settled)
    refuse_unknown(owner, given, names)
