"""Evaluation: played episodes, or estimates from recorded ones."""

import inspect
from typing import Any
from typing import Protocol

from keras_rl2.basics.arguments import check_choice
from keras_rl2.basics.arguments import refuse_unknown
from keras_rl2.data.evaluation import EvaluationDataset
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.offline.offline_evaluation import EvaluatedAgent
from keras_rl2.offline.offline_evaluation import OfflineEvaluation


class LoadedAgent(EvaluatedAgent, Protocol):
    """An agent that may have been loaded; see `keras_rl2.Agent`."""

    def check_loaded(self) -> None:
        """Raises if loaded weights are not finite."""


def evaluate(
    agent: LoadedAgent,
    x: Any = None,
    verbose: Any = "auto",
    return_dict: Any = True,
    callbacks: Any = None,
    **kwargs: Any,
) -> dict[str, float]:
    """Plays episodes, or estimates their returns from recorded ones.

    Args:
        agent: `keras_rl2.Agent`. The agent that acts.
        x: See `Agent.evaluate`. Defaults to `None`.
        verbose: Argument of Keras; nothing is shown. Defaults to `"auto"`.
        return_dict: Argument of Keras, ignored: a dict is always returned.
            Defaults to `True`.
        callbacks: Argument of Keras; there are no batches. Defaults to `None`.
        **kwargs: Arguments of the dataset that is made from `x`.

    Returns:
        dict of numbers.

    Raises:
        ValueError: If an argument has no meaning here.
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
    """Raises if a kind of evaluation does not take an argument.

    Args:
        owner: str. Name of the called function.
        kind: class. Class that is made from the arguments.
        given: dict from names to values.
        *settled: str. Arguments of the class that the user may not set.

    Raises:
        TypeError: If one is unknown.
    """
    names = set(inspect.signature(kind).parameters) - set(settled)
    refuse_unknown(owner, given, names)
