"""One environment as a vector of one."""

from typing import Any

import gymnasium
import numpy as np

from keras_rl2.envs.vector_env import Step
from keras_rl2.envs.vector_env import VectorEnvAdapter


class SingleEnv(VectorEnvAdapter):
    """A `gymnasium.Env`, stepped directly and reset as an episode ends.

    Args:
        env: `gymnasium.Env`.

    Example:

    >>> env = SingleEnv(gymnasium.make("CartPole-v1"))
    >>> env.num_envs, env.reset(seed=0).shape
    (1, (1, 4))
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env, 1, env.observation_space, env.action_space)
        self._rank = len(self._observation_shape)

    def step(self, action: np.ndarray) -> Step:
        """Takes one step, and a reset if it ended the episode."""
        observation, reward, terminated, truncated, _ = self.env.step(
            self._to_action(action)[0]
        )
        observation = self._batch(observation)
        final_observation = None
        if terminated or truncated:
            final_observation = observation
            observation = self._batch(self.env.reset()[0])
        return (
            observation,
            np.array(reward, np.float32, ndmin=1),
            np.array(terminated, np.bool_, ndmin=1),
            np.array(truncated, np.bool_, ndmin=1),
            final_observation,
        )

    def _reset(self, seed: int | None) -> np.ndarray:
        """Resets the environment."""
        observation, _ = self.env.reset(seed=seed)
        self._check_observation(observation, self._observation_shape[1:])
        return self._batch(observation)

    def _batch(self, observation: Any) -> np.ndarray:
        """Copies, since some environments write to one array for ever."""
        return np.array(observation, self.observation_dtype, ndmin=self._rank)
