"""Games of MinAtar in the graph, beside those of the package `minatar`.

Both get the same random numbers: those that ours draws from a seed are handed
to the package in the place of its generator.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import make_graph_env
from keras_rl2.envs.graph.minatar import MinAtar

RECORDS = Path(__file__).parents[1] / "envs" / "graph" / "minatar_records"
IDS = {
    "asterix": "MinAtar/Asterix-v1",
    "breakout": "MinAtar/Breakout-v1",
}
RECORDED_STEPS = 300

#: Chooses an action from a game of the package; None is a random one.
Player = Callable[[Any], int | None]


class Replayed:
    """A generator that returns given uniform numbers, the first ones first."""

    def __init__(self) -> None:
        self.numbers = np.zeros(0, np.float32)

    def rand(self, *shape: int) -> Any:
        size = int(np.prod(shape))
        taken, self.numbers = self.numbers[:size], self.numbers[size:]
        assert len(taken) == size
        return taken.reshape(shape) if shape else taken[0]

    def randint(
        self, low: int, high: int | None = None, size: int | None = None
    ) -> Any:
        if high is None:
            low, high = 0, low
        numbers = self.rand() if size is None else self.rand(size)
        return np.floor(numbers * np.float32(high - low)).astype(int) + low


class Package:
    """An environment of the package that replays our random numbers."""

    def __init__(self, name: str, **settings: Any) -> None:
        from minatar.gym import BaseEnv

        given = {"use_minimal_action_set": True} | settings
        self.env = BaseEnv(game=name, **given)
        self.game = self.env.game.env
        self.env.game.random = Replayed()
        self.game.random = Replayed()

    def reset(self, drawn: np.ndarray) -> np.ndarray:
        self._feed(drawn)
        # An action is not repeated beyond the end of an episode.
        self.env.game.last_action = 0
        return self.env.reset()[0]

    def step(self, action: int, drawn: np.ndarray) -> Any:
        self._feed(drawn)
        observation, reward, terminated, _, _ = self.env.step(action)
        return observation, reward, terminated

    def _feed(self, drawn: np.ndarray) -> None:
        self.env.game.random.numbers = drawn[:1]
        self.game.random.numbers = drawn[1:]


class InGraph:
    """Several environments of ours, as functions of arrays of NumPy."""

    def __init__(self, name: str, **settings: Any) -> None:
        env = make_graph_env(IDS[name], settings)
        assert isinstance(env, MinAtar)
        self.env = env

    def reset(self, seeds: np.ndarray) -> Any:
        return self._run(self._reset, seeds)

    def step(self, *given: Any) -> Any:
        return self._run(self._step, given)

    def drawn(self, seeds: np.ndarray) -> np.ndarray:
        """Returns the random numbers of a reset or step."""
        return self._run(self._drawn, seeds)

    def _run(self, function: Any, given: Any) -> Any:
        result = function(tf.nest.map_structure(tf.constant, given))
        return tf.nest.map_structure(lambda each: each.numpy(), result)

    @tf.function(autograph=False, jit_compile=True)
    def _reset(self, seeds: Any) -> Any:
        return ops.vectorized_map(self.env.reset, seeds)

    @tf.function(autograph=False, jit_compile=True)
    def _step(self, given: Any) -> Any:
        return ops.vectorized_map(lambda each: self.env.step(*each), given)

    @tf.function(autograph=False, jit_compile=True)
    def _drawn(self, seeds: Any) -> Any:
        shape = (1 + self.env._numbers,)
        return ops.vectorized_map(
            lambda seed: random_numbers.uniform(seed, shape), seeds
        )


def check_equals_package(
    name: str,
    num_envs: int = 6,
    steps: int = 500,
    seed: int = 0,
    player: Player = lambda game: None,
    begin: Callable[[Any], dict[str, Any]] = lambda game: {},
    **settings: Any,
) -> dict[str, float]:
    """Plays in both, and asserts that each step is equal.

    Args:
        name: str. Name of the game.
        num_envs: int. Number of environments. Defaults to `6`.
        steps: int. Steps of each. Defaults to `500`.
        seed: int. Defaults to `0`.
        player: Callable. Chooses actions. Defaults to random ones.
        begin: Callable. Changes a game of the package at the beginning of
            an episode, and returns the same changes of ours. Defaults to none.
        **settings: Any. Arguments of the environments.

    Returns:
        dict of the numbers of episodes and rewards.
    """
    pytest.importorskip("minatar")
    ours = InGraph(name, **settings)
    package = [Package(name, **settings) for _ in range(num_envs)]
    assert ours.env.observation_space == package[0].env.observation_space
    assert ours.env.action_space == package[0].env.action_space
    generator = np.random.default_rng(seed)
    fresh = np.ones(num_envs, bool)
    state: dict[str, np.ndarray] = {}
    counts = {"episodes": 0, "rewards": 0.0}
    for _ in range(steps):
        seeds = generator.integers(2**32, size=(num_envs, 2), dtype=np.uint32)
        if fresh.any():
            first, observation = ours.reset(seeds)
            drawn = ours.drawn(seeds)
            state = {
                key: _chosen(fresh, value, state.get(key, value))
                for key, value in first.items()
            }
            for index in np.flatnonzero(fresh):
                np.testing.assert_array_equal(
                    observation[index], package[index].reset(drawn[index])
                )
                for key, value in begin(package[index].game).items():
                    state[key][index] = value
        actions = generator.integers(
            ours.env.action_space.n, size=num_envs, dtype=np.int32
        )
        for index, each in enumerate(package):
            action = player(each.game)
            if action is not None:
                actions[index] = each.env.action_set.index(action)
        seeds = seeds ^ np.uint32(1)
        drawn = ours.drawn(seeds)
        state, observation, reward, fresh, _ = ours.step(state, actions, seeds)
        for index, each in enumerate(package):
            expected = each.step(int(actions[index]), drawn[index])
            np.testing.assert_array_equal(observation[index], expected[0])
            assert (reward[index], fresh[index]) == expected[1:]
        counts["episodes"] += fresh.sum()
        counts["rewards"] += reward.sum()
    return counts


def _chosen(chosen: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Returns new values where they are chosen."""
    return np.where(chosen.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def record_actions(name: str) -> np.ndarray:
    """Returns the actions of a record."""
    count = make_graph_env(IDS[name]).action_space.n
    return np.random.default_rng(1).integers(
        count, size=RECORDED_STEPS, dtype=np.uint8
    )


def record_seeds(step: int) -> np.ndarray:
    """Returns the seed of a step of a record, and of a reset after it."""
    return np.array([[0, step], [1, step]], np.uint32)


def check_equals_record(name: str) -> None:
    """Asserts that ours plays as the package once did.

    Args:
        name: str. Name of the game.
    """
    with np.load(RECORDS / f"{name}.npz") as record:
        actions, rewards, ends = (
            record[key] for key in ("actions", "rewards", "ends")
        )
        bits = np.unpackbits(record["bits"])
    ours = InGraph(name)
    shape = (len(actions) + ends.sum() + 1, *ours.env.observation_space.shape)
    given = iter(bits[: np.prod(shape)].reshape(shape).astype(bool))
    state, observation = ours.reset(record_seeds(0)[1:])
    np.testing.assert_array_equal(observation[0], next(given))
    for number, action in enumerate(actions.astype(np.int32)):
        seeds = record_seeds(number + 1)
        state, observation, reward, end, _ = ours.step(
            state, action[None], seeds[:1]
        )
        np.testing.assert_array_equal(observation[0], next(given))
        assert (reward[0], end[0]) == (rewards[number], ends[number])
        if end[0]:
            state, observation = ours.reset(seeds[1:])
            np.testing.assert_array_equal(observation[0], next(given))


def make_record(name: str) -> None:
    """Records steps of the package.

    Args:
        name: str. Name of the game.
    """
    ours = InGraph(name)
    package = Package(name)
    actions = record_actions(name)
    observations = [package.reset(ours.drawn(record_seeds(0)[1:])[0])]
    rewards, ends = [], []
    for number, action in enumerate(actions):
        step, reset = ours.drawn(record_seeds(number + 1))
        observation, reward, end = package.step(int(action), step)
        observations.append(observation)
        rewards.append(reward)
        ends.append(end)
        if end:
            observations.append(package.reset(reset))
    np.savez_compressed(
        RECORDS / f"{name}.npz",
        actions=actions,
        rewards=np.array(rewards, np.uint8),
        ends=np.array(ends),
        bits=np.packbits(observations),
    )
