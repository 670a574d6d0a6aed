"""The only environment of a vector of one, as a single environment."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv


class FirstOfVectorEnv(gymnasium.Env[Any, Any]):
    """A vector environment of one, behind the interface of a single one.

    What is trained in a native vector environment is looked at and recorded
    in the very same one, not in a single environment that has the same name.

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
        self._no_action = np.zeros(
            (1, *(self.action_space.shape or ())), self.action_space.dtype
        )
        # How the next episode begins, where that is known at once.
        self._start: Any = None
        self._ended = False

    @property
    def vector(self) -> VectorEnv[Any, Any, Any]:
        """The vector environment."""
        return self._vector

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; after another one it is what training sees."""
        start, self._start = self._start, None
        ended, self._ended = self._ended, False
        if not ended or seed is not None or options is not None:
            observation, info = self._vector.reset(seed=seed, options=options)
            return np.array(observation[0]), info
        if start is not None:
            return start, {}
        if self._mode is AutoresetMode.NEXT_STEP:
            # This step is the reset, and heeds no action.
            observation, *_, info = self._vector.step(self._no_action)
        else:
            observation, info = self._vector.reset()
        return np.array(observation[0]), info

    def step(
        self, action: Any
    ) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Takes one step."""
        batch = np.asarray(action, self.action_space.dtype)[None]
        observation, reward, terminated, truncated, info = self._vector.step(
            batch
        )
        # A copy: vector environments may write to one array for ever.
        seen = np.array(observation[0])
        self._ended = bool(terminated[0] or truncated[0])
        if self._ended and self._mode is AutoresetMode.SAME_STEP:
            self._start, seen = seen, np.array(info["final_obs"][0])
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
