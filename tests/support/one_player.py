"""A single environment as a game of one player."""

import gymnasium


class OnePlayer:
    """An environment of Gymnasium behind PettingZoo's parallel interface."""

    possible_agents = ("only",)

    def __init__(self, env_id="CartPole-v1"):
        self.env = gymnasium.make(env_id)
        self.agents = []

    @property
    def unwrapped(self):
        return self

    def observation_space(self, player):
        return self.env.observation_space

    def action_space(self, player):
        return self.env.action_space

    def reset(self, seed=None, options=None):
        observation, info = self.env.reset(seed=seed, options=options)
        self.agents = ["only"]
        return {"only": observation}, {"only": info}

    def step(self, actions):
        outcome = self.env.step(actions["only"])
        if outcome[2] or outcome[3]:
            self.agents = []
        return tuple({"only": each} for each in outcome)

    def close(self):
        self.env.close()
