"""Environments whose state is kept, or not, for one reason each.

Made in other processes too: nothing here imports TensorFlow or Keras.
"""

import gymnasium
import numpy as np
from gymnasium.wrappers import NormalizeObservation
from gymnasium.wrappers import NormalizeReward


class Walk(gymnasium.Env):
    """Walks at random, and says where it is; `weight` is a setting."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, weight=1.0):
        self.weight = weight
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.normal(size=2)
        self.steps = 0
        return self.place.astype(np.float32), {}

    def step(self, action):
        self.place = self.place + self.np_random.normal(size=2) + action
        self.steps += 1
        seen = self.place.astype(np.float32)
        return seen, self.weight, False, self.steps == 9, {}

    def get_state(self):
        return {"place": self.place, "steps": self.steps}

    def set_state(self, state):
        self.place, self.steps = state["place"], state["steps"]


class Game:
    """The game of an environment, of a class unknown to the library."""

    def __init__(self):
        self.moves = 0


class Player(gymnasium.Env):
    """Has all that it depends on in an object, and begins always alike."""

    observation_space = Walk.observation_space
    action_space = Walk.action_space

    def __init__(self):
        self.game = Game()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.game.moves = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.game.moves += 1
        seen = np.full(2, self.game.moves, np.float32)
        return seen, 1.0, False, self.game.moves == 50, {}


class Masked(Walk):
    """Takes no action that it has not allowed."""

    observation_space = gymnasium.spaces.Dict(
        observation=Walk.observation_space,
        action_mask=gymnasium.spaces.MultiBinary(2),
    )

    def reset(self, *, seed=None, options=None):
        observation, _ = super().reset(seed=seed)
        return self._shown(observation), {}

    def step(self, action):
        assert self.allowed[action], "an action that was not allowed"
        observation, *rest = super().step(action)
        return self._shown(observation), *rest

    def get_state(self):
        return {**super().get_state(), "allowed": self.allowed}

    def set_state(self, state):
        super().set_state(state)
        self.allowed = state["allowed"]

    def _shown(self, observation):
        self.allowed = np.array([True, bool(self.np_random.integers(2))])
        return {
            "observation": observation,
            "action_mask": self.allowed.astype(np.int8),
        }


def normalized_walk():
    """Makes a walk with statistics."""
    return NormalizeReward(NormalizeObservation(Walk()), gamma=0.9)


def normalized_player():
    """Makes an unknown environment with running statistics."""
    return NormalizeObservation(Player())
