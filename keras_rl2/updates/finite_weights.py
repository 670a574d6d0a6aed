"""Weights that are not finite: what is not saved, exported or loaded."""

import math
from collections.abc import Iterable

import keras
import numpy as np

from keras_rl2.collecting.checks import is_finite


def refuse_non_finite(
    agent: keras.Model,
    verb: str,
    variables: Iterable[keras.Variable] | None = None,
) -> None:
    """Refuses to go on with an agent whose weights are not finite.

    Args:
        agent: `keras.Model`.
        verb: str. What is not done to it, "save" say.
        variables: Iterable of `keras.Variable` or None. What is looked at;
            None for all of its weights and those of its optimizers. Defaults
            to `None`.

    Raises:
        ValueError: If there is a weight that is infinite or not a number; the
            text names the first one.
    """
    if variables is None:
        variables = saved_variables(agent)
    name = first_not_finite(variables)
    if name is not None:
        raise ValueError(
            f"Expected finite weights to {verb} {agent.name!r}. Received: "
            f"{name!r} with values that are infinite or not numbers"
        )


def saved_variables(agent: keras.Model) -> list[keras.Variable]:
    """Returns all that is in a saved agent: weights and optimizers' slots.

    Args:
        agent: `keras.Model`.
    """
    # Means of losses are no weights, and are not saved.
    weights = list(agent.weights)
    if agent.compiled and agent.optimizer is not None:
        weights += agent.optimizer.variables
    return weights


def first_not_finite(variables: Iterable[keras.Variable]) -> str | None:
    """Returns the path of the first variable that is not finite.

    Args:
        variables: Iterable of `keras.Variable`.

    Returns:
        str, or None where all are.
    """
    for variable in variables:
        # Keys and counters are integers.
        if not is_finite(variable.value.numpy()):
            return str(variable.path)
    return None


Values = list[tuple[keras.Variable, np.ndarray]]


def values_of(agent: keras.Model) -> Values:
    """Returns all that is in a saved agent, with its values.

    Args:
        agent: `keras.Model`.
    """
    return [
        (each, np.array(each.value.numpy())) for each in saved_variables(agent)
    ]


def put_back(values: Values) -> None:
    """Gives variables the values that they had.

    Args:
        values: As of `values_of`.
    """
    for variable, value in values:
        variable.assign(value)


def is_small(rate: float) -> bool:
    """Says whether weights cannot overflow by a step of a learning rate.

    Args:
        rate: float.
    """
    return math.isfinite(rate) and rate < math.sqrt(np.finfo("float32").max)
