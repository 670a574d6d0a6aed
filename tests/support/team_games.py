"""Games of two groups whose players die apart, counted by hand."""

import gymnasium
import numpy as np


class Tag:
    """Player i of a group leaves after its own number of steps.

    `red_0` and `red_1` play 2 and 5 steps, `blue_0` and `blue_1` 3 and 4; a
    game lasts 5. Each step is worth 1 to red and 10 to blue.
    """

    metadata: dict = {}
    render_mode = None
    lengths = {"red_0": 2, "red_1": 5, "blue_0": 3, "blue_1": 4}
    unwrapped = property(lambda self: self)
    #: Number of resets with a seed.
    seeded = 0

    def __init__(self):
        self.possible_agents = [*self.lengths]
        self.agents = []
        self.np_random = np.random.default_rng(0)

    def __str__(self):
        return "tag"

    def observation_space(self, player):
        size = 2 if player.startswith("red") else 3
        return gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def action_space(self, player):
        return gymnasium.spaces.Discrete(2 if player.startswith("red") else 3)

    def _seen(self, players):
        return {
            name: np.array([self.time, self.luck, 0.5], np.float32)[
                : self.observation_space(name).shape[0]
            ]
            for name in players
        }

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.np_random = np.random.default_rng(seed)
            self.seeded += 1
        self.time, self.luck = 0, self.np_random.random()
        self.agents = [*self.possible_agents]
        return self._seen(self.agents), {name: {} for name in self.agents}

    def step(self, actions):
        assert set(actions) == set(self.agents)
        self.time += 1
        self.luck = self.np_random.random()
        played, over = self.agents, {}
        for name in played:
            over[name] = self.time == self.lengths[name]
        self.agents = [name for name in played if not over[name]]
        worth = {"red": 1.0, "blue": 10.0}
        rewards = {name: worth[name[:-2]] for name in played}
        never = dict.fromkeys(played, False)
        return self._seen(played), rewards, over, never, {n: {} for n in played}

    def get_state(self):
        return {"time": self.time, "luck": self.luck, "agents": [*self.agents]}

    def set_state(self, state):
        vars(self).update(state)

    def close(self):
        pass
