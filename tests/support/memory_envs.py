"""Environments in which earlier observations matter."""

import gymnasium as gym
import numpy as np


class PositionsOnly(gym.ObservationWrapper):
    """CartPole without velocities: where things are, not how they move."""

    def __init__(self, env):
        super().__init__(env)
        seen = env.observation_space
        self.observation_space = gym.spaces.Box(seen.low[::2], seen.high[::2])

    def observation(self, observation):
        return np.array(observation[::2])


class RememberTheCue(gym.Env):
    """The first observation says which action is right at the end.

    Args:
        steps: int. Steps of an episode.
        cues: int. How many cues and actions there are.
    """

    def __init__(self, steps=20, cues=2):
        self.observation_space = gym.spaces.Box(0.0, 1.0, (cues + 1,))
        self.action_space = gym.spaces.Discrete(cues)
        self.steps = steps

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.cue = int(self.np_random.integers(self.action_space.n))
        self.time = 0
        return self._observation(), {}

    def _observation(self):
        observation = np.zeros(self.observation_space.shape, np.float32)
        if self.time == 0:
            observation[self.cue] = 1.0
        # The last entry says that it is time to answer.
        observation[-1] = float(self.time == self.steps - 1)
        return observation

    def step(self, action):
        last = self.time == self.steps - 1
        reward = float(last and int(action) == self.cue)
        self.time += 1
        return self._observation(), reward, last, False, {}
