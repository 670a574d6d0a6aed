"""A ring restored from segments is the ring, whenever it was saved."""

import dataclasses

import numpy as np
import pytest

from keras_rl2.data import ring as ring_module
from keras_rl2.data.prioritized_replay_buffer import PrioritizedReplayBuffer
from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.array_spec import ArraySpec
from support.replay_reference import part
from support.replay_reference import stream

NUM_ENVS = 2
ONE = ArraySpec((2,), "float32")
SPEC = {"one": ONE, "whole": (ArraySpec((2,), "int32"), ArraySpec((), "uint8"))}


def make(n_step=1, spec=ONE, capacity=20):
    return ReplayBuffer(
        capacity, NUM_ENVS, spec, (), np.int32, n_step=n_step, gamma=0.9,
        seed=0,
    )  # fmt: skip


def as_tree(array):
    """Returns observations of `SPEC` that tell rows apart."""
    numbers = (array * 1000).astype(np.int32)
    return {"one": array, "whole": (numbers, numbers[..., 0].astype(np.uint8))}


def as_trees(trajectory):
    return dataclasses.replace(
        trajectory,
        observation=as_tree(trajectory.observation),
        final_observation=as_tree(trajectory.final_observation),
    )


class Saved:
    """A log that is written, and read, as another process would."""

    def __init__(self, directory):
        self.directory = directory
        self.log = SegmentLog(directory)
        self.count = 0

    def save(self, ring):
        state = ring.get_state(self.log)
        self.log.segments = self.log.write(f"{self.count:04d}")
        self.count += 1
        return state

    def restored(self, ring, state):
        log = SegmentLog(self.directory, self.log.segments)
        ring.set_state(state, log)
        return ring


def same_transitions(one, other):
    """Asserts that two rings hold the same transitions in the same places.

    Both have the same chance, and draw each transition many times.
    """
    assert len(other) == len(one)
    if len(one):
        drawn = 30 * len(one)
        np.testing.assert_equal(other.sample(drawn), one.sample(drawn))


@pytest.mark.parametrize(
    ("seed", "n_step", "next_step", "spec"),
    [
        (0, 1, False, ONE),
        (1, 3, True, SPEC),
        pytest.param(2, 3, False, ONE, marks=pytest.mark.slow),
        pytest.param(3, 1, True, SPEC, marks=pytest.mark.slow),
    ],
)
def test_saved_at_random_times(
    seed, n_step, next_step, spec, tmp_path, monkeypatch
):
    """Steps are added and truncated in between, in pieces of any length."""
    if n_step == 3:
        # A file for each row.
        monkeypatch.setattr(ring_module, "_PART_BYTES", 1)
    generator = np.random.default_rng(seed)
    trajectory = stream(generator, 300, NUM_ENVS, next_step)[0]
    if spec is SPEC:
        trajectory = as_trees(trajectory)
    ring, saved = make(n_step, spec), Saved(tmp_path)
    step = saves = 0
    while step < 300:
        stop = min(step + int(generator.integers(1, 9)), 300)
        ring.extend(part_of(trajectory, step, stop))
        step = stop
        what = generator.random()
        if what < 0.1:
            ring.cut()
        elif what < 0.3:
            ring.cut(generator.random(NUM_ENVS) < 0.5)
        if generator.random() < 0.4:
            state = saved.save(ring)
            again = saved.restored(make(n_step, spec), state)
            np.testing.assert_equal(again.get_state(), ring.get_state())
            same_transitions(again, ring)
            saves += 1
            if generator.random() < 0.3:
                # Killed, and gone on with.
                ring = again
    assert saves > 10
    # Old rows are left behind: 11 rows, of at most 8 steps and more a segment.
    files = saved.log.segments[state["log"]]
    assert len(files) < (saves if n_step == 1 else 30)


def part_of(trajectory, start, stop):
    """Returns some steps of a trajectory, of trees or not."""
    if isinstance(trajectory.observation, np.ndarray):
        return part(trajectory, start, stop)
    one = dataclasses.replace(
        trajectory,
        observation=trajectory.observation["one"],
        final_observation=trajectory.final_observation["one"],
    )
    return as_trees(part(one, start, stop))


def test_rows_of_a_failed_write_are_written_again(tmp_path):
    trajectory = stream(np.random.default_rng(1), 60, NUM_ENVS, False)[0]
    ring, saved = make(3, capacity=200), Saved(tmp_path)
    for start in range(0, 60, 5):
        ring.extend(part(trajectory, start, start + 5))
        if start % 3:
            # Written perhaps, but nothing refers to it.
            ring.get_state(saved.log)
            saved.log.write(f"{saved.count:04d}")
        else:
            state = saved.save(ring)
            again = saved.restored(make(3, capacity=200), state)
            np.testing.assert_equal(again.get_state(), ring.get_state())


def test_only_new_rows_are_written(tmp_path):
    trajectory = stream(np.random.default_rng(0), 300, NUM_ENVS, False)[0]
    ring, saved = make(capacity=600), Saved(tmp_path)
    for start in range(0, 300, 50):
        ring.extend(part(trajectory, start, start + 50))
        state = saved.save(ring)
    lengths = [len(each["slot"]) for each in saved.log.read(state["log"])]
    # The row of the observation after the newest step, and one that may have
    # been cut since.
    assert lengths == [51, *[52] * 5]


def test_priorities_go_with_it(tmp_path):
    def buffer():
        return PrioritizedReplayBuffer(
            40, NUM_ENVS, ONE, (), np.int32, alpha=0.7, beta=0.5, n_step=3,
            gamma=0.9, seed=0,
        )  # fmt: skip

    trajectory = stream(np.random.default_rng(0), 60, NUM_ENVS, False)[0]
    one, saved = buffer(), Saved(tmp_path)
    for start in range(0, 60, 6):
        one.extend(part(trajectory, start, start + 6))
        drawn = one.sample(8)
        one.update_priorities(drawn["index"], np.arange(8.0))
        state = saved.save(one)
    other = saved.restored(buffer(), state)
    np.testing.assert_equal(other.sample(32), one.sample(32))
