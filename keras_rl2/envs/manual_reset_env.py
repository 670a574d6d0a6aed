"""Vector environments that leave resetting to their user."""

import functools
from typing import Any

import numpy as np

from keras_rl2.envs.gymnasium_vector_env import GymnasiumVectorEnv
from keras_rl2.envs.vector_env import Step
from keras_rl2.spaces.trees import map_leaves


class ManualResetEnv(GymnasiumVectorEnv):
    """A vector environment with `AutoresetMode.DISABLED`.

    Environments whose episode ended are reset here, at once.

    Args:
        env: `gymnasium.vector.VectorEnv`.

    Example:

    >>> import gymnasium
    >>> env = ManualResetEnv(
    ...     gymnasium.make_vec(
    ...         "CartPole-v1",
    ...         num_envs=2,
    ...         vectorization_mode="sync",
    ...         vector_kwargs={"autoreset_mode": "Disabled"},
    ...     )
    ... )
    >>> env.reset(seed=0).shape
    (2, 4)
    """

    def _step(self, action: Any) -> Step:
        """Takes one step in every environment, and the resets it calls for."""
        given = self.env.step(self._to_action(action))
        if self.steps == 1:
            self._checks.check_step(given)
        observation, reward, terminated, truncated, _ = given
        reward = np.asarray(reward, np.float32)
        terminated = np.asarray(terminated, np.bool_)
        truncated = np.asarray(truncated, np.bool_)
        observation = self._to_observation(observation)
        ended = terminated | truncated
        if not np.count_nonzero(ended):
            return observation, reward, terminated, truncated, None
        # Copied first: a reset may write to the array that a step returned.
        final_observation = map_leaves(np.copy, observation)
        first, _ = self.env.reset(options={"reset_mask": ended.copy()})
        observation = map_leaves(
            functools.partial(_replaced, ended), final_observation, first
        )
        return observation, reward, terminated, truncated, final_observation


def _replaced(
    chosen: np.ndarray, array: np.ndarray, replacing: np.ndarray
) -> np.ndarray:
    """Returns a copy in which some rows are those of another array."""
    copy = array.copy()
    copy[chosen] = np.asarray(replacing)[chosen]
    return copy
