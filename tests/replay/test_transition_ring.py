"""What a ring answers, asked directly; `test_replay_buffer` has the rest."""

import numpy as np
import pytest

from keras_rl2.replay.transition_ring import TransitionRing
from keras_rl2.spaces.array_spec import ArraySpec
from support.replay_reference import part
from support.replay_reference import stream

NUM_ENVS = 2


def make(capacity=20, **settings):
    return TransitionRing(
        capacity, NUM_ENVS, ArraySpec((2,), "float32"), ((), np.int32), 3, 0.9,
        **settings,
    )  # fmt: skip


@pytest.fixture
def trajectory():
    """Sixty steps, some of them mere resets, in a ring of eleven rows."""
    return stream(np.random.default_rng(0), 60, NUM_ENVS, True)[0]


def test_numbers_and_places(trajectory):
    ring = make()
    assert (ring.capacity, ring.places) == (20, 22)
    for t in range(60):
        ring.extend(part(trajectory, t, t + 1))
        held = np.arange(ring.oldest, ring.steps)
        assert len(held) == min(20, NUM_ENVS * (t + 1))
        np.testing.assert_array_equal(ring.index_of(held % 22), held)


def test_what_came_and_went_is_noted(trajectory):
    changes = []
    ring = make(changes=changes)
    known = np.zeros(ring.places, np.bool_)
    for start in range(0, 60, 4):
        ring.extend(part(trajectory, start, start + 4))
        if start == 32:
            ring.cut()
        noted = np.unique(np.concatenate(changes))
        changes.clear()
        now = ring.drawable(np.arange(ring.places))
        # Nothing changes that is not noted.
        assert np.isin(np.flatnonzero(known != now), noted).all()
        known = now
        np.testing.assert_array_equal(
            ring.drawable_places(), np.nonzero(now)[0]
        )
        assert len(ring) == np.count_nonzero(now)


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
    monkeypatch.setattr(
        "keras_rl2.replay.memory.available_memory", lambda: 2**16
    )
    make()
    with pytest.raises(MemoryError, match="20 transitions"):
        make(bytes_beside=2**13)
