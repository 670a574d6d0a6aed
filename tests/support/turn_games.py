"""A game whose players alternate, small enough to be counted by hand."""

import gymnasium
import numpy as np

SPACE = gymnasium.spaces.Box(0.0, 9.0, (2,), np.float32)


class Counting:
    """The players add 1 or 2 to a count in turn, and who ends it wins.

    It has the methods of PettingZoo's `AECEnv`. An action is 0 for 1, and 1 for
    2. Who adds receives as much, which the others lose; the winner receives 10
    in addition, which the others lose. Who makes the count that is `deadly` is
    out, with its share of the reward so far.

    Args:
        end: int. The count at which the game ends.
        players: int. Number of players.
        deadly: int. A count.
        limit: int. The count at which time is up, and nobody has won.
        masked: str or None. Where the mask is that forbids to add more than is
            left: `"observation"` or `"info"`.
    """

    def __init__(self, end=4, players=2, deadly=-1, limit=9, masked=None):
        self.end, self.deadly, self.masked = end, deadly, masked
        self.limit = limit
        self.possible_agents = [f"player_{i}" for i in range(players)]
        self.agents = []

    unwrapped = property(lambda self: self)

    def __str__(self):
        return "Counting"

    def observation_space(self, agent):
        if self.masked == "observation":
            mask = gymnasium.spaces.Box(0, 1, (2,), np.int8)
            return gymnasium.spaces.Dict(observation=SPACE, action_mask=mask)
        return SPACE

    def action_space(self, agent):
        return gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.count = 0
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict(self.rewards)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.agent_selection = self.agents[0]

    @property
    def mask(self):
        return np.array([1, self.count + 2 <= self.end], np.int8)

    @property
    def infos(self):
        in_info = {"action_mask": self.mask} if self.masked == "info" else {}
        return dict.fromkeys(self.agents, in_info)

    def observe(self, agent):
        who = self.possible_agents.index(agent)
        seen = np.array([self.count, who], np.float32)
        if self.masked == "observation":
            return {"observation": seen, "action_mask": self.mask}
        return seen

    def last(self, observe=True):
        agent = self.agent_selection
        return (
            self.observe(agent) if observe else None,
            self._cumulative_rewards[agent],
            self.terminations[agent],
            self.truncations[agent],
            self.infos[agent],
        )

    def step(self, action):
        agent = self.agent_selection
        others = self.agents[:]
        place = others.index(agent)
        # From the next player on.
        others = others[place + 1 :] + others[:place]
        if self.terminations[agent] or self.truncations[agent]:
            assert action is None
            self.agents.remove(agent)
        else:
            assert not self.masked or self.mask[action], "a forbidden move"
            self._add(agent, int(action) + 1)
            others.append(agent)
        dead = [
            each
            for each in others
            if self.terminations[each] or self.truncations[each]
        ]
        if others:
            self.agent_selection = (dead or others)[0]

    def _add(self, agent, amount):
        self.count += amount
        self._cumulative_rewards[agent] = 0.0
        over = self.count >= self.end
        for each in self.agents:
            share = amount + 10.0 * over
            self._cumulative_rewards[each] += share if each == agent else -share
        if over:
            self.terminations = dict.fromkeys(self.agents, True)
        elif self.count == self.deadly:
            self.terminations[agent] = True
        elif self.count == self.limit:
            self.truncations = dict.fromkeys(self.agents, True)

    def close(self):
        pass

    def get_state(self):
        names = "count agents _cumulative_rewards terminations agent_selection"
        return {
            name: getattr(self, name).copy()
            if isinstance(getattr(self, name), dict | list)
            else getattr(self, name)
            for name in [*names.split(), "truncations"]
        }

    def set_state(self, state):
        vars(self).update(state)


def env(end=4):
    """Makes a game, as PettingZoo's modules do."""
    return Counting(end)
