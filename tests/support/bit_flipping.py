"""Bits to flip to a goal, of Andrychowicz et al., 2017, section 3.1."""

import gymnasium
import numpy as np
from gymnasium.spaces import Dict
from gymnasium.spaces import Discrete
from gymnasium.spaces import MultiBinary


class BitFlipping(gymnasium.Env):
    """n bits, of which each action flips one; -1 a step until all are right.

    The episode ends with the goal, or after n steps.
    """

    def __init__(self, bits=8):
        self.bits = bits
        self.action_space = Discrete(bits)
        keys = ("observation", "achieved_goal", "desired_goal")
        self.observation_space = Dict(
            {key: MultiBinary(bits) for key in keys}
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        state, goal = self.np_random.integers(0, 2, (2, self.bits))
        self.state, self.goal = state.astype(np.int8), goal.astype(np.int8)
        self.steps = 0
        return self._observation(), {}

    def step(self, action):
        self.state[action] ^= 1
        self.steps += 1
        reached = bool(self.compute_terminated(self.state, self.goal, {}))
        reward = float(self.compute_reward(self.state, self.goal, {}))
        truncated = not reached and self.steps == self.bits
        return self._observation(), reward, reached, truncated, {}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return self.compute_terminated(achieved_goal, desired_goal, info) - 1.0

    def compute_terminated(self, achieved_goal, desired_goal, info):
        return (achieved_goal == desired_goal).all(axis=-1)

    def _observation(self):
        state = self.state.copy()
        return {
            "observation": state,
            "achieved_goal": state,
            "desired_goal": self.goal,
        }
