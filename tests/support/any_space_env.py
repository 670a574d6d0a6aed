"""An environment of any spaces."""

import gymnasium
import numpy as np

EPISODE_LENGTH = 5
"""Steps of each episode, unless told otherwise."""


class AnySpaceEnv(gymnasium.Env):
    """Any observation and action space; refuses actions outside of it.

    Episodes are random observations, `limit` steps long, cut off; the reward
    is the mean of the action.
    """

    def __init__(self, observation_space, action_space, limit=EPISODE_LENGTH):
        self.observation_space = observation_space
        self.action_space = action_space
        self._limit = limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self._step = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        if not self.action_space.contains(action):
            raise AssertionError(f"{action!r} is not in {self.action_space}")
        self._step += 1
        observation = self.observation_space.sample()
        reward = float(np.mean(action))
        return observation, reward, False, self._step == self._limit, {}

    def get_state(self):
        return self._step, self.observation_space.np_random

    def set_state(self, state):
        self._step, drawn = state
        draw = self.observation_space.np_random
        draw.bit_generator.state = drawn.bit_generator.state
