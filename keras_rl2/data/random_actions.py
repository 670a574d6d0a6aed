"""Acting at random, as an actor does that has nothing learned yet."""

from typing import Any

import numpy as np


def random_actor(observation: np.ndarray, actions: Any) -> Any:
    """Acts with what `random_actions` drew; takes the place of an actor.

    Args:
        observation: `[B, ...]`. Not looked at.
        actions: Pair of actions, of the policy and of the environment.

    Returns:
        The pair.
    """
    return actions


def random_actions(
    head: Any, generator: np.random.Generator, shape: tuple[int, int]
) -> list[Any]:
    """Draws actions uniformly.

    Args:
        head: `PolicyHead`. Says what actions look like.
        generator: NumPy generator.
        shape: `(T, B)`. Steps and environments.

    Returns:
        For each step the policy's own actions `[B, ...]`, and the same as
        environments take them.
    """
    action = head.random_action(generator, shape)
    # All at once: each call of Keras outside of a graph costs a millisecond.
    taken = head.to_environment(action.reshape(-1, *action.shape[2:]))
    taken = np.asarray(taken)
    return list(
        zip(action, taken.reshape(*shape, *taken.shape[1:]), strict=True)
    )
