"""A task in which most choices are forbidden."""

import gymnasium as gym
import numpy as np


class ForbiddenChoices(gym.Env):
    """Shows a number, and pays 1 for choosing it; other numbers are forbidden.

    The same task as sb3-contrib's for invalid actions: each step shows a new
    number and forbids some others, and `action_masks()` says which.

    Args:
        choices: int. Numbers to choose from.
        forbidden: int. How many of them are forbidden at each step.
        steps: int. Steps of an episode.
    """

    def __init__(self, choices=80, forbidden=60, steps=100):
        self.observation_space = gym.spaces.Discrete(choices)
        self.action_space = gym.spaces.Discrete(choices)
        self.forbidden = forbidden
        self.steps = steps
        #: Forbidden actions that were taken, over all episodes.
        self.violations = 0

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._next(), {}

    def _next(self):
        choices = int(self.action_space.n)
        self.shown = int(self.np_random.integers(choices))
        others = np.delete(np.arange(choices), self.shown)
        self.allowed = np.ones(choices, bool)
        self.allowed[
            self.np_random.choice(others, self.forbidden, replace=False)
        ] = False
        return self.shown

    def action_masks(self):
        return self.allowed

    def step(self, action):
        self.violations += not self.allowed[int(action)]
        reward = float(int(action) == self.shown)
        self.time += 1
        return self._next(), reward, False, self.time >= self.steps, {}
