"""Numbers that a policy acts with, and those that it gives."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.spaces.trees import named_leaves


def is_finite(array: np.ndarray) -> bool:
    """Says whether all numbers of an array are finite, in a microsecond.

    Args:
        array: Of any shape and dtype.

    Returns:
        bool.

    Example:

    >>> is_finite(np.array([1e30, -1e30], "float32"))
    True
    >>> is_finite(np.array([1.0, np.nan], "float32"))
    False
    """
    if array.dtype.kind == "f":
        # The sum of squares of what is not finite is not finite. That it
        # overflows is rare.
        if math.isfinite(np.vdot(array, array)):
            return True
    elif array.dtype.kind in "iub":
        return True
    # NumPy itself knows nothing of bfloat16.
    return bool(np.isfinite(array.astype("float64")).all())


def check_weights(variables: Sequence[Any], values: list[np.ndarray]) -> None:
    """Refuses to act with weights that are not finite.

    Args:
        variables: Sequence of `keras.Variable`.
        values: list of arrays. Their values.

    Raises:
        ValueError: If one is not finite; the text names it.
    """
    for variable, value in zip(variables, values, strict=True):
        if not is_finite(value):
            raise ValueError(
                "Expected finite weights to act with. Received: "
                f"{variable.path!r} with values that are infinite or not "
                "numbers"
            )


def check_actions(action: np.ndarray, observation: Any) -> None:
    """Refuses actions that are not finite, before an environment gets them.

    Args:
        action: `[B, ...]`. The policy's own actions.
        observation: tree of `[B, ...]`. What it acted on.

    Raises:
        ValueError: If one is not finite; the text says for which environment,
            and what the largest number was that it saw.
    """
    if is_finite(action):
        return
    where = tuple(np.argwhere(~np.isfinite(action))[0].tolist())
    seen = {
        path: float(np.abs(array[where[0]].astype("float64")).max())
        for path, array in named_leaves(observation)
        if array[where[0]].size
    }
    path, largest = max(seen.items(), key=lambda each: each[1])
    raise ValueError(
        "Expected finite actions from the policy. Received: "
        f"action={action[where]} for environment {where[0]}, where the "
        f"largest number of the observation{f' {path}' if path else ''} was "
        f"{largest:.6g}. No environment was given it: its network gave what "
        "is infinite or not a number, of weights that are finite"
    )
