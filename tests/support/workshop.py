"""A picture, a number, a mask, a memory and hybrid actions at once."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

TOOLS = 3
STEPS = 4


class Workshop(gym.Env):
    """A picture says at first which tool is wanted, and a mask where not to go.

    In the last step the tool counts, and how far it is opened: as far as the
    level says. One of the other tools is locked at each step.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = spaces.Dict(
        {
            "picture": spaces.Box(0, 255, (8, 8, 1), np.uint8),
            "level": spaces.Box(0.0, 1.0, (1,), np.float32),
            "action_mask": spaces.Box(0, 1, (TOOLS,), np.int8),
        }
    )
    action_space = spaces.Dict(
        {
            "open": spaces.Box(0.0, 1.0, (1,), np.float32),
            "tool": spaces.Discrete(TOOLS),
        }
    )

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        self.wanted = int(self.np_random.integers(TOOLS))
        return self._seen(), {}

    def _seen(self):
        picture = np.zeros((8, 8, 1), np.uint8)
        if self.time == 0:
            picture[2 * self.wanted : 2 * self.wanted + 2] = 255
        self.level = self.np_random.random(1, np.float32)
        others = [tool for tool in range(TOOLS) if tool != self.wanted]
        self.locked = int(self.np_random.choice(others))
        mask = np.ones(TOOLS, np.int8)
        mask[self.locked] = 0
        return {"picture": picture, "level": self.level, "action_mask": mask}

    def step(self, action):
        assert self.action_space.contains(action)
        assert action["tool"] != self.locked
        self.time += 1
        done = self.time == STEPS
        reward = 0.0
        if done and action["tool"] == self.wanted:
            reward = 1.0 - float(abs(action["open"] - self.level)[0])
        return self._seen(), reward, done, False, {}

    def render(self):
        return np.full((16, 16, 3), 50 * self.time, np.uint8)
