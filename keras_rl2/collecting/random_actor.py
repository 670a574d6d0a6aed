"""Random actions, in place of a policy before its training."""

import operator
from typing import Any

import numpy as np

from keras_rl2.collecting.policy_actor import Actions
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import allowed_choice
from keras_rl2.spaces.trees import map_leaves


def random_actor(observation: Any, actions: Actions) -> Actions:
    """Returns actions drawn in advance; replaces an actor."""
    return actions


def allowed_choice_from(start: int, observation: Any, scores: Any) -> Actions:
    """Chooses among the valid actions of masks; replaces an actor.

    The masks are only known step by step: scores `[B, n]` are drawn in advance,
    and the valid action with the highest score is taken.

    Args:
        start: int. The environment's number of the first action.
        observation: dict of `[B, ...]`, with an action mask `[B, n]`.
        scores: `[B, n]`, at least 0.

    Example:

    >>> observation = {"action_mask": np.array([[1, 0, 1]])}
    >>> allowed_choice_from(5, observation, [[0.2, 0.9, 0.4]])
    (array([2], dtype=int32), array([7], dtype=int32))
    """
    action = allowed_choice(observation[ACTION_MASK], scores)
    return action, action + np.int32(start)


class MaskedRandomActor:
    """Acts at random among the valid actions; replaces an actor."""

    def __init__(self, head: Any, generator: np.random.Generator) -> None:
        self._head = head
        self._generator = generator

    def __call__(self, observation: Any, noise: object) -> Actions:
        """Draws an action for each environment; see `PolicyActor`."""
        mask = observation[ACTION_MASK]
        action = self._head.random_action(self._generator, mask.shape[:1], mask)
        return action, map_leaves(np.asarray, self._head.to_environment(action))


def random_actions(
    head: Any, generator: np.random.Generator, shape: tuple[int, int]
) -> list[Actions]:
    """Draws actions uniformly.

    Returns:
        For each step the policy's actions `[B, ...]`, and the same in the form
        of the environment.
    """
    action: np.ndarray = head.random_action(generator, shape)
    # [T, B, ...] -> [T * B, ...]: all in one call, since each call of Keras
    # outside of a graph costs a millisecond.
    flat = action.reshape(-1, *action.shape[2:])
    converted = map_leaves(
        lambda each: np.asarray(each).reshape(*shape, *each.shape[1:]),
        head.to_environment(flat),
    )
    return [
        (action[t], map_leaves(operator.itemgetter(t), converted))
        for t in range(len(action))
    ]
