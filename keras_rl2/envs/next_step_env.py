"""Vector environments that reset in the step after the end of an episode."""

from typing import Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv

from keras_rl2.envs.gymnasium_vector_env import GymnasiumVectorEnv
from keras_rl2.envs.vector_env import Step
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import map_leaves


class NextStepEnv(GymnasiumVectorEnv):
    """A vector environment with `AutoresetMode.NEXT_STEP`.

    The observation returned with the end of an episode is the true last one.
    The next step ignores the action and returns the first observation of the
    next episode: such a row is no transition and has to be masked.

    Args:
        env: `gymnasium.vector.VectorEnv`.

    Example:

    >>> import gymnasium
    >>> env = NextStepEnv(gymnasium.make_vec("CartPole-v1", num_envs=2))
    >>> env.masks_reset_rows, env.pending_reset
    (True, array([False, False]))
    """

    masks_reset_rows = True

    def _step(self, action: Any) -> Step:
        """Takes one step in every environment."""
        given = self.env.step(self._to_action(action))
        if self.steps == 1:
            self._checks.check_step(given)
        observation, reward, terminated, truncated, _ = given
        reward = np.asarray(reward, np.float32)
        terminated = np.asarray(terminated, np.bool_)
        truncated = np.asarray(truncated, np.bool_)
        resetting = self.pending_reset
        if np.count_nonzero(resetting):
            # So it should be anyway; but one environment that is careless
            # about it would shift the mask of all that follows.
            reward = np.where(resetting, np.float32(0.0), reward)
            terminated = terminated & ~resetting
            truncated = truncated & ~resetting
        self.pending_reset = terminated | truncated
        return (
            self._to_observation(observation),
            reward,
            terminated,
            truncated,
            None,
        )

    def _reset(self, seed: int | None) -> Any:
        """Resets all environments, and what they had still to do."""
        env = self.env.unwrapped
        if (
            isinstance(env, AsyncVectorEnv)
            and not env.shared_memory
            and self.pending_reset.any()
        ):
            # Without shared memory, a worker that is reset while it has a
            # reset pending makes that one too, in the step after (Gymnasium
            # 1.4). A step gets it out of the way.
            self.env.step(map_leaves(self._nothing, self._action_spec))
        return super()._reset(seed)

    def _nothing(self, spec: ArraySpec) -> np.ndarray:
        """Returns an action that is not heeded."""
        return np.zeros((self.num_envs, *spec.shape), spec.dtype)
