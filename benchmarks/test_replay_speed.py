"""Time that drawing from a million transitions takes."""

import timeit

import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.spaces.array_spec import ArraySpec

pytestmark = pytest.mark.usefixtures("as_users_run")

COUNT = 1_000_000
BATCH_SIZE = 256


def microseconds(function, number=200, repeat=7):
    """Returns the time of one call, the best of several series."""
    return (
        1e6
        * min(timeit.repeat(function, number=number, repeat=repeat))
        / (number)
    )


def fill(buffer, chunk=100_000):
    generator = np.random.default_rng(0)
    leading = (chunk, 1)
    trajectory = rl.data.Trajectory(
        observation=generator.random((chunk + 1, 1, 17), np.float32),
        action=generator.random((chunk, 1, 6), np.float32),
        reward=generator.random(leading, np.float32),
        terminated=np.zeros(leading, np.bool_),
        truncated=generator.random(leading) < 0.001,
        valid=np.ones(leading, np.bool_),
        final_observation=np.empty((0, 17), np.float32),
        final_index=np.empty(0, np.int32),
    )
    for _ in range(COUNT // chunk):
        buffer.extend(trajectory)
    return buffer


def make(make_buffer, **settings):
    return fill(
        make_buffer(
            COUNT,
            1,
            ArraySpec((17,), "float32"),
            (6,),
            np.float32,
            seed=0,
            **settings,
        )
    )


def test_sum_tree_of_a_million():
    generator = np.random.default_rng(0)
    tree = rl.data.SumTree(COUNT)
    tree.update(np.arange(COUNT), generator.random(COUNT))
    indices = iter(generator.integers(0, COUNT, (10_000, BATCH_SIZE)))
    value = generator.random(BATCH_SIZE)
    sample = microseconds(lambda: tree.sample(BATCH_SIZE, generator))
    update = microseconds(lambda: tree.update(next(indices), value))
    print(f"tree: sample {sample:.0f} us, update {update:.0f} us")
    assert sample <= 100
    assert update <= 400


@pytest.mark.parametrize("n_step", [1, 3])
def test_uniform_replay_of_a_million(n_step):
    buffer = make(rl.data.ReplayBuffer, n_step=n_step)
    sample = microseconds(lambda: buffer.sample(BATCH_SIZE))
    print(f"uniform, n_step={n_step}: sample {sample:.0f} us")
    assert sample <= 100


@pytest.mark.parametrize("n_step", [1, 3])
def test_prioritized_replay_of_a_million(n_step):
    buffer = make(rl.data.PrioritizedReplayBuffer, n_step=n_step)
    sample = microseconds(lambda: buffer.sample(BATCH_SIZE))
    batch = buffer.sample(BATCH_SIZE)
    index, td_error = batch["index"], batch["reward"]
    update = microseconds(lambda: buffer.update_priorities(index, td_error))
    observation = np.zeros((1, 17), np.float32)
    flags, action = np.zeros(1, np.bool_), np.zeros((1, 6), np.float32)

    def add():
        buffer.add(
            observation, action, [1.0], flags, flags, ~flags, observation
        )

    add = microseconds(add)
    print(
        f"prioritized, n_step={n_step}: sample {sample:.0f} us, update "
        f"{update:.0f} us, add {add:.0f} us"
    )
    assert sample <= 100
    assert update <= 400
