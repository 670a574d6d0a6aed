"""Vector environments that reset in the step that ends an episode."""

import functools
import operator
from typing import Any

import numpy as np

from keras_rl2.envs.gymnasium_vector_env import GymnasiumVectorEnv
from keras_rl2.envs.vector_env import Step
from keras_rl2.spaces.trees import map_leaves


class SameStepEnv(GymnasiumVectorEnv):
    """A vector environment with `AutoresetMode.SAME_STEP`.

    Args:
        env: `gymnasium.vector.VectorEnv`.

    Example:

    >>> import gymnasium
    >>> env = SameStepEnv(
    ...     gymnasium.make_vec(
    ...         "CartPole-v1",
    ...         num_envs=2,
    ...         vectorization_mode="sync",
    ...         vector_kwargs={"autoreset_mode": "SameStep"},
    ...     )
    ... )
    >>> env.reset(seed=0).shape
    (2, 4)
    """

    def _step(self, action: Any) -> Step:
        """Takes one step in every environment."""
        given = self.env.step(self._to_action(action))
        if self.steps == 1:
            self._checks.check_step(given)
        observation, reward, terminated, truncated, info = given
        terminated = np.asarray(terminated, np.bool_)
        truncated = np.asarray(truncated, np.bool_)
        observation = self._to_observation(observation)
        final_observation = None
        ended = terminated | truncated
        if np.count_nonzero(ended):
            final_observation = self._final(observation, ended, info)
        return (
            observation,
            np.asarray(reward, np.float32),
            terminated,
            truncated,
            final_observation,
        )

    def _final(self, observation: Any, ended: np.ndarray, info: Any) -> Any:
        """Puts the last observations in place of the first ones."""
        if "final_obs" not in info:
            raise ValueError(
                f"Expected info['final_obs'] from {self.name}, whose autoreset "
                "mode is SAME_STEP, when an episode ends. Received: info with "
                f"the keys {sorted(info)}"
            )
        final_observation = map_leaves(np.copy, observation)
        given = info["final_obs"]
        for i in np.flatnonzero(ended).tolist():
            # An array of observations, None where no episode ended, or one
            # tree of arrays `[B, ...]`.
            last = (
                given[i]
                if isinstance(given, np.ndarray | list)
                else map_leaves(operator.itemgetter(i), given)
            )
            map_leaves(functools.partial(_put, i), final_observation, last)
        return final_observation


def _put(index: int, array: np.ndarray, row: Any) -> None:
    """Writes one row."""
    array[index] = row
