"""Environments with goals, whose rewards are a function of the goal."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.spaces import Dict
from gymnasium.spaces import Discrete
from gymnasium.spaces import MultiBinary


class BitFlipping(gymnasium.Env):
    """n bits, of which each action flips one; -1 a step until all are right.

    The episode ends with the goal, or after n steps: Andrychowicz et al., 2017,
    section 3.1.
    """

    def __init__(self, bits=8):
        self.bits = bits
        self.action_space = Discrete(bits)
        keys = ("observation", "achieved_goal", "desired_goal")
        self.observation_space = Dict({key: MultiBinary(bits) for key in keys})

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

    def get_state(self):
        return {"state": self.state, "goal": self.goal, "steps": self.steps}

    def set_state(self, state):
        vars(self).update(state)

    def _observation(self):
        state = self.state.copy()
        return {
            "observation": state,
            "achieved_goal": state,
            "desired_goal": self.goal,
        }


class Milestones(gymnasium.Env):
    """Achieves 100, 101, ... in the first episode, 200, ... in the second.

    Episodes of 5 and of 3 steps take turns; the short ones are terminated. The
    reward tells the goals of a step: 10 g + a for g desired and a achieved.
    """

    def __init__(self, action_space=None):
        self.action_space = action_space or Discrete(2)
        number = Box(-1e4, 1e4, (1,), np.float32)
        keys = ("observation", "achieved_goal", "desired_goal")
        self.observation_space = Dict(dict.fromkeys(keys, number))
        self.achieved = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.achieved += 100 - self.achieved % 100
        return self._observation(), {}

    def step(self, action):
        self.achieved += 1
        episode, time = divmod(self.achieved, 100)
        terminated = episode % 2 == 0 and time == 3
        reward = self.compute_reward(*np.array([[self.achieved], [-1]]), {})
        truncated = time == 5
        return self._observation(), float(reward), terminated, truncated, {}

    def compute_reward(self, achieved_goal, desired_goal, info):
        return (10.0 * desired_goal + achieved_goal)[..., 0]

    def _observation(self):
        achieved = np.array([self.achieved], np.float32)
        goal = np.array([-1], np.float32)
        return {
            "observation": achieved,
            "achieved_goal": achieved,
            "desired_goal": goal,
        }
