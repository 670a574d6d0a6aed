"""Acting at random, as an actor does that has nothing learned yet."""

import numpy as np

from keras_rl2.data.actors import Actions
from keras_rl2.policy_heads import PolicyHead


def random_actor(observation: np.ndarray, actions: Actions) -> Actions:
    """Acts with what `random_actions` drew; takes the place of an actor.

    Args:
        observation: `[B, ...]`. Not looked at.
        actions: Pair of actions, of the policy and of the environment.

    Returns:
        The pair.
    """
    return actions


def random_actions(
    head: PolicyHead, generator: np.random.Generator, shape: tuple[int, int]
) -> list[Actions]:
    """Draws actions uniformly.

    Args:
        head: `PolicyHead`. Says what actions look like.
        generator: NumPy generator.
        shape: `(T, B)`. Steps and environments.

    Returns:
        For each step the policy's own actions `[B, ...]`, and the same as
        environments take them.
    """
    action: np.ndarray = head.random_action(generator, shape)
    # All at once: each call of Keras outside of a graph costs a millisecond.
    # [T, B, ...] -> [T * B, ...] -> [T, B, ...]
    flat = action.reshape(-1, *action.shape[2:])
    taken: np.ndarray = np.asarray(head.to_environment(flat))
    taken = taken.reshape(*shape, *taken.shape[1:])
    return list(zip(action, taken, strict=True))
