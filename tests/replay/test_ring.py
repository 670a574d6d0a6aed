"""Numbers and places of the ring, and what subclasses note of it.

`test_replay_buffer` has the rest.
"""

import numpy as np
import pytest

from keras_rl2.replay.replay_buffer import ReplayBuffer
from keras_rl2.spaces.array_spec import ArraySpec
from support.replay_reference import part
from support.replay_reference import stream

NUM_ENVS = 2


class Noting(ReplayBuffer):
    """A buffer that reads which transitions came and went."""

    def __init__(self, *arguments, **settings):
        self._changes = []
        super().__init__(*arguments, **settings)

    def noted(self):
        changes = np.unique(np.concatenate(self._changes))
        self._changes.clear()
        return changes


class Large(ReplayBuffer):
    """A buffer that needs memory for each transition beside its ring."""

    _bytes_beside = 2**13


def make(kind=ReplayBuffer):
    return kind(
        20, NUM_ENVS, ArraySpec((2,), "float32"), (), np.int32, n_step=3,
        gamma=0.9, seed=0,
    )  # fmt: skip


@pytest.fixture
def trajectory():
    """Sixty steps, some of them mere resets, in a ring of eleven rows."""
    return stream(np.random.default_rng(0), 60, NUM_ENVS, True)[0]


def test_numbers_and_places(trajectory):
    buffer = make()
    ring = buffer._ring
    assert (buffer.capacity, ring.capacity, ring.places) == (20, 20, 22)
    for t in range(60):
        buffer.extend(part(trajectory, t, t + 1))
        held = np.arange(ring.oldest, buffer.steps)
        assert len(held) == min(20, NUM_ENVS * (t + 1))
        np.testing.assert_array_equal(ring.index_of(held % 22), held)


def test_what_came_and_went_is_noted(trajectory):
    buffer = make(Noting)
    places = np.arange(buffer._ring.places)
    known = np.zeros(places.size, np.bool_)
    for start in range(0, 60, 4):
        buffer.extend(part(trajectory, start, start + 4))
        if start == 32:
            buffer.cut()
        if start == 40:
            buffer.discard_episodes(np.array([True, False]))
        now = buffer._is_drawable(places)
        # Nothing changes that is not noted.
        assert np.isin(np.flatnonzero(known != now), buffer.noted()).all()
        known = now
        assert len(buffer) == np.count_nonzero(now)


def test_a_state_that_does_not_fit_changes_nothing(trajectory):
    ring = make()
    ring.extend(part(trajectory, 0, 7))
    state, before = ring.get_state(), ring.get_state()
    ring.extend(part(trajectory, 7, 9))
    after = ring.get_state()
    state["reward"] = state["reward"][:-1]
    with pytest.raises(ValueError, match="Expected reward of shape"):
        ring.set_state(state)
    np.testing.assert_equal(ring.get_state(), after)
    ring.set_state(before)
    np.testing.assert_equal(ring.get_state(), before)


def test_memory_beside_the_ring_counts(monkeypatch):
    monkeypatch.setattr("keras_rl2.replay.ring.available_memory", lambda: 2**16)
    make()
    with pytest.raises(MemoryError, match="20 transitions"):
        make(Large)
