"""A task in which one number of a whole run is of another size."""

import gymnasium
import numpy as np
from gymnasium import spaces

STEPS = 20


class GlitchEnv(gymnasium.Env):
    """20 steps; +1 where the action is the sign of what `place` shows.

    Args:
        key: What is something else, once: `"observation"`, `"reward"`, or
            None for nothing.
        value: What it is.
        at: The step of the environment's life in which it comes.
    """

    observation_space = spaces.Dict(
        {
            "noise": spaces.Box(-np.inf, np.inf, (2,), np.float32),
            "place": spaces.Box(-np.inf, np.inf, (1,), np.float32),
        }
    )
    action_space = spaces.Discrete(2)

    def __init__(self, key=None, value=0.0, at=605):
        self._key, self._value, self._at = key, value, at
        self._taken = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return self._observe(), {}

    def step(self, action):
        reward = float(action == (self._place > 0))
        self._step += 1
        self._taken += 1
        observation = self._observe()
        if self._taken == self._at and self._key == "reward":
            reward = self._value
        if self._taken == self._at and self._key == "observation":
            observation["place"][:] = self._value
        return observation, reward, False, self._step == STEPS, {}

    def _observe(self):
        self._place = self.np_random.normal()
        return {
            "noise": self.np_random.normal(size=2).astype(np.float32),
            "place": np.array([self._place], np.float32),
        }


def glitch_envs(key=None, value=0.0, at=605):
    """Makes four environments, of which the third has a glitch."""
    given = [{}, {}, {"key": key, "value": value, "at": at}, {}]
    return gymnasium.vector.SyncVectorEnv(
        [lambda arguments=each: GlitchEnv(**arguments) for each in given],
        autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
    )
