"""Acting at random, in the place of a policy that has nothing learned."""

from typing import Any

import numpy as np

from keras_rl2.collecting.policy_actor import Actions
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import allowed_choice


def random_actor(observation: Any, actions: Actions) -> Actions:
    """Acts with what was drawn beforehand; takes the place of an actor.

    Args:
        observation: `[B, ...]`. Not looked at.
        actions: Pair of actions, of the policy and of the environment.

    Returns:
        The pair.
    """
    return actions


class AllowedChoice:
    """Chooses among what masks allow; takes the place of an actor.

    What is allowed, only the environment knows, step by step: scores are
    drawn beforehand, and the best that is allowed is taken.

    Args:
        start: int. What the environment calls the first action.

    Example:

    >>> choose = AllowedChoice(start=5)
    >>> choose({"action_mask": np.array([[1, 0, 1]])}, [[0.2, 0.9, 0.4]])
    (array([2], dtype=int32), array([7], dtype=int32))
    """

    def __init__(self, start: int) -> None:
        self.start = start

    def __call__(self, observation: Any, scores: Any) -> Actions:
        """Chooses.

        Args:
            observation: dict of `[B, ...]`, with an action mask `[B, n]`.
            scores: `[B, n]`, at least 0.

        Returns:
            Pair of actions `[B]`, of the policy and of the environment.
        """
        action = allowed_choice(observation[ACTION_MASK], scores)
        return action, action + np.int32(self.start)
