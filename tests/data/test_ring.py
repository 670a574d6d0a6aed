"""The ring of steps: its places and its state."""

import numpy as np
import pytest

from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.spaces.array_spec import ArraySpec
from support.replay_reference import part
from support.replay_reference import stream

NUM_ENVS = 2


def make():
    return ReplayBuffer(
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
