"""One environment as a vector of one."""

import operator
from typing import Any

import gymnasium
import numpy as np

from keras_rl2.envs.vector_env import Observation
from keras_rl2.envs.vector_env import Step
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.envs.vector_env import seed_layers
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves


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
        spec = self.observation_spec
        self._shape = spec.shape if isinstance(spec, ArraySpec) else ()

    def _step(self, action: Tree[np.ndarray]) -> Step:
        """Takes one step, and a reset if it ended the episode."""
        batch = self._to_action(action)
        # [1, ...] -> [...]
        given = self.env.step(map_leaves(operator.itemgetter(0), batch))
        if self.steps == 1:
            self._checks.check_step(given)
        observation, reward, terminated, truncated, _ = given
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

    def _reset(self, seed: int | None) -> Any:
        """Resets the environment."""
        if seed is not None:
            seed_layers(self.env, seed)
        given = self.env.reset(seed=seed)
        self._checks.check_reset(given, in_range=self.resets == 0)
        return self._batch(given[0])

    def _given_shape(self) -> tuple[int, ...]:
        """Returns `()`: there is one observation."""
        return ()

    def _culprits(self, error: BaseException) -> np.ndarray | None:
        """Returns the only environment, `[1]`."""
        return np.ones(1, np.bool_)

    def _batch(self, observation: Observation) -> Any:
        """Copies, since some environments write to one array for ever."""
        if self._dtype is not None:
            copy = np.array(observation, self._dtype)
            # Otherwise it might be broadcast where it is stored.
            if copy.shape != self._shape:
                self._checks.check_observation(observation)
            # [...] -> [1, ...]
            return copy[None]
        return map_leaves(
            lambda spec, array: np.array(array, spec.dtype)[None],
            self.observation_spec,
            observation,
        )
