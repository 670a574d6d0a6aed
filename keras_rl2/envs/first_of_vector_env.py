"""The only environment of a vector of one, as a single environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import create_empty_array

from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.trees import map_leaves


class FirstOfVectorEnv(gymnasium.Env[Any, Any]):
    """A vector environment of one, behind the interface of a single one.

    An agent trained in a native vector environment is evaluated and recorded
    in that same one, not in a single environment of the same name.

    Args:
        vector: `gymnasium.vector.VectorEnv` of one environment.

    Example:

    >>> env = FirstOfVectorEnv(gymnasium.make_vec("CartPole-v1", num_envs=1))
    >>> env.reset(seed=0)[0].shape, env.action_space
    ((4,), Discrete(2))
    """

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        self._vector = vector
        self.observation_space = vector.single_observation_space
        self.action_space = vector.single_action_space
        self.metadata = dict(vector.metadata)
        self.render_mode = getattr(vector, "render_mode", None)
        self.spec = vector.spec and gymnasium.spec(vector.spec.id)
        self._mode = AutoresetMode(vector.metadata["autoreset_mode"])
        self._action_spec = action_spec(self.action_space)
        self._no_action = create_empty_array(self.action_space, 1)
        # First observation of the next episode, where it is known at once.
        self._start: Any = None
        self._ended = False

    @property
    def vector(self) -> VectorEnv[Any, Any, Any]:
        """The vector environment."""
        return self._vector

    @property
    def np_random(self) -> np.random.Generator:
        """Random generator of the vector environment and of its wrappers."""
        return self._vector.np_random

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        self._vector.np_random = value

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; after another one, the same as in training."""
        start, self._start = self._start, None
        ended, self._ended = self._ended, False
        if not ended or seed is not None or options is not None:
            observation, info = self._vector.reset(seed=seed, options=options)
            return _first(observation), info
        if start is not None:
            return start, {}
        if self._mode is AutoresetMode.NEXT_STEP:
            # This step is the reset, and ignores the action.
            observation, *_, info = self._vector.step(self._no_action)
        else:
            observation, info = self._vector.reset()
        return _first(observation), info

    def step(
        self, action: object
    ) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes one step."""
        batch = map_leaves(_batch_of_one, self._action_spec, action)
        observation, reward, terminated, truncated, info = self._vector.step(
            batch
        )
        # A copy: vector environments may write to one array for ever.
        seen = _first(observation)
        self._ended = bool(terminated[0] or truncated[0])
        if self._ended and self._mode is AutoresetMode.SAME_STEP:
            self._start, seen = seen, _last(info["final_obs"])
        return (
            seen,
            float(reward[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            info,
        )

    def render(self) -> Any:
        """Returns the picture of the environment."""
        pictures = self._vector.render()
        return None if pictures is None else pictures[0]

    def close(self) -> None:
        """Closes the vector environment."""
        self._vector.close()


def _batch_of_one(spec: ArraySpec, array: np.ndarray) -> np.ndarray:
    """Returns one array of an action as a batch, `[1, ...]`."""
    return np.asarray(array, spec.dtype)[None]


def _first(batch: np.ndarray) -> Any:
    """Returns a copy of the first row of each array."""
    return map_leaves(lambda array: np.array(array[0]), batch)


def _last(final: Any) -> Any:
    """Returns a copy of the only last observation."""
    if isinstance(final, np.ndarray):
        return map_leaves(np.array, final[0])
    return _first(final)
