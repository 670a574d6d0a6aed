"""Acting at random, as an actor does that has nothing learned yet."""

from typing import Any

import numpy as np

from keras_rl2.collecting.policy_actor import Actions
from keras_rl2.collecting.random_actor import AllowedChoice
from keras_rl2.collecting.random_actor import random_actor
from keras_rl2.policy_heads import DiscreteHead
from keras_rl2.policy_heads import PolicyHead
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves


class MaskedRandomActor:
    """Acts at random among what is allowed; takes the place of an actor.

    Args:
        head: `PolicyHead`. Says what actions look like.
        generator: NumPy generator.
    """

    def __init__(
        self, head: PolicyHead, generator: np.random.Generator
    ) -> None:
        self._head = head
        self._generator = generator

    def __call__(self, observation: Any, noise: object) -> Actions:
        """Draws an action for each environment.

        Args:
            observation: dict of `[B, ...]`, with an action mask.
            noise: Not looked at.

        Returns:
            Pair of actions, of the policy and of the environment.
        """
        mask = observation[ACTION_MASK]
        action = self._head.random_action(self._generator, mask.shape[:1], mask)
        taken = self._head.to_environment(action)
        return action, map_leaves(np.asarray, taken)


def random_play(
    head: PolicyHead,
    generator: np.random.Generator,
    observation_space: Any,
    shape: tuple[int, int],
) -> tuple[Any, Any]:
    """Returns what acts at random in the place of an actor, for some steps.

    Args:
        head: `PolicyHead`. Says what actions look like.
        generator: NumPy generator.
        observation_space: `gymnasium.Space`. Says whether there are masks.
        shape: `(T, B)`. Steps and environments.

    Returns:
        The actor, and what it is to be given at each step.
    """
    if is_masked(observation_space):
        if isinstance(head, DiscreteHead):
            scores = generator.random((*shape, head.n))
            return AllowedChoice(head.start), scores
        # What is allowed, only the environment knows, step by step.
        return MaskedRandomActor(head, generator), np.zeros(shape)
    return random_actor, random_actions(head, generator, shape)


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
    taken = steps_for_environments(head, action)
    return [
        (action[t], map_leaves(lambda each, t=t: each[t], taken))
        for t in range(shape[0])
    ]


def steps_for_environments(
    head: PolicyHead, action: np.ndarray
) -> Tree[np.ndarray]:
    """Returns actions of several steps as environments take them.

    All at once: each call of Keras outside of a graph costs a millisecond.

    Args:
        head: `PolicyHead`.
        action: `[T, B, ...]`. The policy's own.

    Returns:
        `[T, B, ...]`, a tree of arrays.
    """
    shape = action.shape[:2]
    # [T, B, ...] -> [T * B, ...] -> [T, B, ...]
    flat = action.reshape(-1, *action.shape[2:])
    taken: Tree[np.ndarray] = map_leaves(
        lambda each: np.asarray(each).reshape(*shape, *each.shape[1:]),
        head.to_environment(flat),
    )
    return taken
