"""Environments that observe and do several things at once, or forbid some.

Each is written as a user would write it, and refuses actions outside of its
action space.
"""

import copy
import functools

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

from keras_rl2.envs import as_vector_env
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import map_leaves

ACTION_MASK = "action_mask"

OBSERVATIONS = {
    "dict": spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (6, 5, 3), np.uint8),
            "position": spaces.Box(-5.0, 5.0, (3,), np.float64),
            "gear": spaces.Discrete(4, start=1),
        }
    ),
    "tuple": spaces.Tuple(
        (
            spaces.Discrete(3),
            spaces.Box(-1.0, 1.0, (2, 2), np.float32),
            spaces.Box(-1.0, 1.0, (), np.float32),
        )
    ),
    "nested": spaces.Dict(
        {
            "arm": spaces.Dict(
                {
                    "angle": spaces.Box(-1.0, 1.0, (2,), np.float32),
                    "grip": spaces.MultiBinary(2),
                }
            ),
            "hands": spaces.Tuple(
                (
                    spaces.MultiDiscrete([2, 3], start=[1, -1]),
                    spaces.Dict({"full": spaces.Discrete(2)}),
                )
            ),
        }
    ),
    "multi_discrete": spaces.MultiDiscrete([[2, 3], [4, 2]]),
    "multi_binary": spaces.MultiBinary((2, 3)),
}
"""Observation spaces that are trees, or whose arrays are no vectors."""

ACTIONS = {
    "discrete": spaces.Discrete(3),
    "box": spaces.Box(-1.0, 1.0, (1,), np.float32),
}

HYBRID_ACTIONS = {
    "dict": spaces.Dict(
        {
            "gear": spaces.Discrete(3, start=2),
            "wheel": spaces.Box(-1.0, 2.0, (2,), np.float32),
            "lights": spaces.MultiBinary(2),
        }
    ),
    "tuple": spaces.Tuple(
        (
            spaces.MultiDiscrete([2, 3], start=[0, 1]),
            spaces.Dict({"push": spaces.Box(-1.0, 1.0, (), np.float64)}),
        )
    ),
}
"""Action spaces of several kinds at once."""

MASKED_ACTIONS = {
    "discrete": spaces.Discrete(5, start=1),
    "multi_discrete": spaces.MultiDiscrete([3, 2, 4]),
    "multi_binary": spaces.MultiBinary(4),
}
"""Action spaces whose members can be forbidden."""


class StructuredEnv(gymnasium.Env):
    """Random observations of any space, which do not depend on the action.

    The reward is the mean of all numbers of the action.

    Args:
        observation_space: Of the observations.
        action_space: Of the actions.
        lengths: Lengths of the episodes, taken in turn.
        truncates: Whether the episodes at the same places are truncated
            instead of terminated.
    """

    def __init__(
        self,
        observation_space,
        action_space=ACTIONS["discrete"],
        lengths=(3, 1, 5),
        truncates=(False, True, False),
    ):
        # Each environment seeds a space of its own.
        self.observation_space = copy.deepcopy(observation_space)
        self.action_space = action_space
        self._lengths = lengths
        self._truncates = truncates
        self._episode = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self._episode += 1
        self._step = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        if not self.action_space.contains(action):
            raise AssertionError(f"{action!r} is not in {self.action_space}")
        kind = self._episode % len(self._lengths)
        if self._step == self._lengths[kind]:
            raise AssertionError("step() after the end of the episode")
        self._step += 1
        ended = self._step == self._lengths[kind]
        cut = self._truncates[kind]
        reward = float(np.mean(spaces.flatten(self.action_space, action)))
        observation = self.observation_space.sample()
        return observation, reward, ended and not cut, ended and cut, {}


class Forbidden(AssertionError):
    """The error of `MaskedEnv`, which a test can tell from others."""


class MaskedEnv(gymnasium.Env):
    """Allows some actions at each step, and raises `Forbidden` at others.

    When the game is over nothing is allowed, as PettingZoo has it. The reward
    is 1 for the last action that is allowed, else 0.

    Args:
        action_space: `Discrete`, `MultiDiscrete` or `MultiBinary`.
        lengths: Lengths of the episodes, taken in turn.
        mask: The mask of every step, or None for random masks.
    """

    def __init__(
        self,
        action_space=MASKED_ACTIONS["discrete"],
        lengths=(4, 1, 6),
        mask=None,
    ):
        self.action_space = action_space
        self._sizes = choices_of(action_space)
        size = sum(self._sizes)
        self.observation_space = spaces.Dict(
            {
                "position": spaces.Box(-1.0, 1.0, (3,), np.float32),
                ACTION_MASK: spaces.Box(0, 1, (size,), np.int8),
            }
        )
        self._lengths = lengths
        self._fixed = mask
        self._episode = -1
        #: Pairs of what was allowed and what was done.
        self.taken = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._episode += 1
        self._step = 0
        return self._observation(over=False), {}

    def step(self, action):
        flags = flags_of(self.action_space, action)
        if not self.action_space.contains(action):
            raise AssertionError(f"{action!r} is not in {self.action_space}")
        if (flags > self.mask).any():
            raise Forbidden(f"{action!r} where {self.mask} is allowed")
        self.taken.append((self.mask, flags))
        reward = float(flags[np.flatnonzero(self.mask)[-1:]].sum())
        self._step += 1
        length = self._lengths[self._episode % len(self._lengths)]
        over = self._step == length
        return self._observation(over), reward, over, False, {}

    def _observation(self, over):
        position = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        self.mask = np.zeros(sum(self._sizes), np.int8)
        if not over:
            self.mask = self._draw()
        return {"position": position, ACTION_MASK: self.mask.copy()}

    def _draw(self):
        if self._fixed is not None:
            return np.array(self._fixed, np.int8)
        masks = []
        for size in self._sizes:
            mask = (self.np_random.random(size) < 0.4).astype(np.int8)
            mask[self.np_random.integers(size)] = 1
            masks.append(mask)
        return np.concatenate(masks)


def choices_of(space):
    """Returns how many flags each choice of an action has."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return space.nvec.ravel().tolist()
    return [1] * int(np.prod(space.shape))


def flags_of(space, action):
    """Returns which of the things that can be chosen an action chooses."""
    if isinstance(space, spaces.MultiBinary):
        return np.ravel(action)
    start = np.ravel(space.start)
    chosen = np.ravel(action) - start
    sizes = choices_of(space)
    return np.concatenate(
        [np.arange(n) == index for n, index in zip(sizes, chosen, strict=True)]
    ).astype(np.int8)


class BanditEnv(gymnasium.Env):
    """One step: 1 for the gear that is shown, less the error of the number.

    The right number is half the gear that is shown, counted from -1.
    """

    def __init__(self):
        self.observation_space = spaces.Dict(
            {"shown": spaces.Discrete(3), "noise": spaces.Box(-1.0, 1.0, (2,))}
        )
        self.action_space = spaces.Dict(
            {
                "gear": spaces.Discrete(3, start=2),
                "number": spaces.Box(-1.0, 1.0, (1,), np.float32),
            }
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observation(), {}

    def step(self, action):
        if not self.action_space.contains(action):
            raise AssertionError(f"{action!r} is not in {self.action_space}")
        right = float(action["gear"] == self._shown + 2)
        error = float(action["number"][0]) - right_number(self._shown)
        return self._observation(), right - abs(error), True, False, {}

    def _observation(self):
        self._shown = int(self.np_random.integers(3))
        noise = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return {"shown": self._shown, "noise": noise}


def right_number(shown):
    """Returns the number that `BanditEnv` wants."""
    return 0.5 * (shown - 1)


def vector(make, mode=AutoresetMode.NEXT_STEP, num_envs=2, asynchronous=False):
    """Makes an adapter of several environments.

    Args:
        make: Function that makes one.
        mode: `AutoresetMode`.
        num_envs: How many.
        asynchronous: Whether each has a process of its own.
    """
    kind = AsyncVectorEnv if asynchronous else SyncVectorEnv
    return as_vector_env(kind([make] * num_envs, autoreset_mode=mode))


def structured(
    observation="dict", action="discrete", mode=AutoresetMode.NEXT_STEP
):
    """Makes two `StructuredEnv` of the names of their spaces."""
    action_space = {**ACTIONS, **HYBRID_ACTIONS}[action]
    make = functools.partial(
        StructuredEnv, OBSERVATIONS[observation], action_space
    )
    return vector(make, mode)


def batch_of(space, count, seed=0):
    """Returns a batch of members of a space: a tree of arrays `[B, ...]`."""
    space = copy.deepcopy(space)
    space.seed(seed)
    return batched([space.sample() for _ in range(count)])


def batched(observations):
    """Lays observations on each other: a tree of arrays `[B, ...]`."""
    return map_leaves(lambda *each: np.stack(each), *observations)


def masked_batch(space=MASKED_ACTIONS["discrete"], count=200, seed=0):
    """Returns observations of `MaskedEnv` that allow something each."""
    env = MaskedEnv(space)
    first, _ = env.reset(seed=seed)
    others = [env._observation(over=False) for _ in range(count - 1)]
    return batched([first, *others])


def row(batch, index):
    """Returns one observation, or action, of a batch."""
    return map_leaves(lambda array: array[index], batch)


def assert_members(space, action, leading=()):
    """Asserts that an action, or a batch, is one of a space.

    Shape and dtype of each array are those that its space declares.
    """

    def check(leaf, array):
        assert array.shape == (*leading, *(leaf.shape or ()))
        assert array.dtype == leaf.dtype
        for each in array.reshape(-1, *(leaf.shape or ())):
            assert leaf.contains(each), (leaf, each)

    map_leaves(check, space_tree(space), action)


def assert_trees_equal(actual, expected, **tolerance):
    """Asserts that two trees have the same keys and the same numbers.

    Args:
        actual: Tree of arrays.
        expected: Tree of arrays.
        **tolerance: `rtol` or `atol`; none for equality bit for bit.
    """
    assert type(actual) is type(expected) or not isinstance(actual, dict)
    if isinstance(expected, dict):
        assert set(actual) == set(expected)

    def compare(one, other):
        if tolerance:
            np.testing.assert_allclose(one, other, **tolerance)
        else:
            np.testing.assert_array_equal(one, other)

    map_leaves(compare, expected, actual)
