"""Checks of observations, masks and actions before their use."""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from keras_rl2.spaces.action_format import ActionFormat
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.trees import named_leaves


def is_finite(array: np.ndarray) -> bool:
    """Returns whether all numbers of an array are finite, in a microsecond.

    Example:

    >>> is_finite(np.array([1e30, -1e30], "float32"))
    True
    >>> is_finite(np.array([1.0, np.nan], "float32"))
    False
    """
    if array.dtype.kind == "f":
        # The sum of squares is not finite if a number is not finite. It rarely
        # overflows otherwise.
        if math.isfinite(np.vdot(array, array)):
            return True
    elif array.dtype.kind in "iub":
        return True
    # NumPy itself does not support bfloat16.
    return bool(np.isfinite(array.astype("float64")).all())


def check_finite(
    name: str, tree: Any, place_of: Callable[[tuple[int, ...]], str]
) -> None:
    """Raises a `ValueError` for a number that is not finite, with its place."""
    for path, array in named_leaves(tree):
        if array.dtype.kind != "f" or np.isfinite(array).all():
            continue
        where = tuple(np.argwhere(~np.isfinite(array))[0].tolist())
        key = f"{name} {path}".strip()
        raise ValueError(
            f"Expected a finite {key} from every environment. "
            f"Received: {key}={array[where]} from environment {place_of(where)}"
        )


def check_actions(action: np.ndarray, observation: Any) -> None:
    """Checks that actions `[B, ...]` are finite, before they are taken."""
    if is_finite(action):
        return
    where = tuple(np.argwhere(~np.isfinite(action))[0].tolist())
    sizes = {
        path: float(np.abs(array[where[0]].astype("float64")).max())
        for path, array in named_leaves(observation)
        if array[where[0]].size
    }
    path, largest = max(sizes.items(), key=operator.itemgetter(1))
    raise ValueError(
        "Expected finite actions from the policy. Received: "
        f"action={action[where]} for environment {where[0]}, where the "
        f"largest number of the observation{f' {path}' if path else ''} was "
        f"{largest:.6g}. It was not passed to an environment: the network "
        "returned infinity or NaN although its weights are finite"
    )


def check_mask(
    head: ActionFormat,
    observation: Any,
    waiting: np.ndarray,
    env_name: str,
    step: int,
) -> None:
    """Checks that action masks allow an action in each environment.

    Args:
        head: `ActionFormat`. Form of the masked actions.
        observation: dict of `[B, ...]`, with a mask.
        waiting: `[B]` bool. Environments that ignore the next action.
        env_name: str. Name of the environment, for the message.
        step: int. Number of the step, for the message.
    """
    nothing = head.leaves_nothing(observation[ACTION_MASK]) & ~waiting
    if nothing.any():
        index = int(np.flatnonzero(nothing)[0])
        mask = observation[ACTION_MASK][index]
        raise ValueError(
            "Expected an action mask that allows at least one action. "
            f"Received: {mask.tolist()} from environment {index} of "
            f"{env_name} at step {step}"
        )
