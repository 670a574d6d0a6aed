"""Action masks on their way from the environment."""

from typing import Any

import numpy as np

from keras_rl2.spaces.action_format import ActionFormat
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import is_masked


def masking_head(space: Any, head: ActionFormat) -> ActionFormat | None:
    """Returns the head whose masks are to be checked, if there are any.

    Args:
        space: `gymnasium.Space`. Of observations.
        head: `ActionFormat`. Says what masks are for.

    Returns:
        The head, or None where observations hold no action mask.
    """
    return head if is_masked(space) else None


def check_mask(
    head: ActionFormat,
    observation: Any,
    waiting: np.ndarray,
    env_name: str,
    step: int,
) -> None:
    """Refuses to act where nothing is allowed.

    Args:
        head: `ActionFormat`. Says what masks are for.
        observation: dict of `[B, ...]`, with a mask.
        waiting: `[B]` bool. Environments whose next step heeds no action.
        env_name: str. What the environment is called.
        step: int. For people.

    Raises:
        ValueError: If there is such an environment.
    """
    nothing = head.leaves_nothing(observation[ACTION_MASK]) & ~waiting
    if nothing.any():
        index = int(np.flatnonzero(nothing)[0])
        mask = observation[ACTION_MASK][index]
        raise ValueError(
            "Expected an action mask that allows one action at least. "
            f"Received: {mask.tolist()} from environment {index} of "
            f"{env_name} at step {step}"
        )
