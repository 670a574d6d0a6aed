"""Environments whose state is kept, or not, for one reason each.

Made in other processes too: nothing here imports TensorFlow or Keras.
"""

import itertools
import os
import typing

import gymnasium
import numpy as np
from gymnasium.wrappers import NormalizeObservation
from gymnasium.wrappers import NormalizeReward
from gymnasium.wrappers import StickyAction


class Walk(gymnasium.Env):
    """Walks at random; all of it is plain data, and `weight` a setting."""

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


class Piped(Walk):
    """Tells of its steps through a pipe, and closes that in the end."""

    def __init__(self):
        super().__init__()
        self.ours, self.theirs = os.pipe()

    def step(self, action):
        os.write(self.theirs, b"s")
        # Fails where somebody else has closed or emptied it.
        assert os.read(self.ours, 2) == b"s"
        return super().step(action)

    def close(self):
        for name in {"ours", "theirs"} & vars(self).keys():
            os.close(vars(self).pop(name))

    def __del__(self):
        self.close()


class Handle(Walk):
    """Has a simulator elsewhere, by a number that `__del__` closes."""

    simulators: typing.ClassVar[dict[int, float]] = {}
    numbers = itertools.count()

    def __init__(self):
        super().__init__()
        self.client = next(self.numbers)
        self.simulators[self.client] = 0.0

    def step(self, action):
        self.simulators[self.client] += 1.0 + action
        _, *rest = super().step(action)
        return np.full(2, self.simulators[self.client], np.float32), *rest

    def __del__(self):
        del self.simulators[self.client]


class Hidden(Walk):
    """Keeps a count where nobody finds it."""

    def __init__(self):
        super().__init__()
        self.counter = iter(range(10**6))

    def step(self, action):
        _, *rest = super().step(action)
        return np.full(2, next(self.counter), np.float32), *rest


class Game:
    """What an environment plays: nobody knows what it is made of."""

    def __init__(self):
        self.moves = 0


class Player(Walk):
    """Has all that it depends on in an object, and begins always alike."""

    def __init__(self):
        super().__init__()
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

    def _shown(self, observation):
        self.allowed = np.array([True, bool(self.np_random.integers(2))])
        return {
            "observation": observation,
            "action_mask": self.allowed.astype(np.int8),
        }


def normalized(env):
    """Wraps an environment in what has statistics."""
    return NormalizeReward(NormalizeObservation(env), gamma=0.9)


def sticky(env):
    """Wraps an environment in what repeats actions."""
    return StickyAction(env, 0.25)


def normalized_walk():
    """Makes a walk with statistics."""
    return normalized(Walk())
