"""Priorities that the buffer keeps, by hand: p = (|error| + epsilon)^alpha."""

import numpy as np

from keras_rl2.replay.prioritized_replay_buffer import PrioritizedReplayBuffer
from keras_rl2.spaces.array_spec import ArraySpec


def add(buffer, count):
    for t in range(count):
        buffer.add([t], [0], [1.0], [False], [False], [True], [t + 1])


def kept(buffer, count):
    return buffer.get_state()["priority"].ravel()[:count]


def test_errors_new_ones_and_none():
    buffer = PrioritizedReplayBuffer(
        *(16, 1, ArraySpec((), "float32"), (), np.int32),
        alpha=0.5,
        epsilon=1.0,
        seed=0,
    )
    add(buffer, 3)
    # The first have a priority of 1, for want of any error.
    np.testing.assert_allclose(kept(buffer, 3), [1.0, 1.0, 1.0])
    buffer.update_priorities([0, 1, 2], [-8.0, 3.0, 0.0])
    # No error leaves epsilon, so that it can still be drawn.
    np.testing.assert_allclose(kept(buffer, 3), [3.0, 2.0, 1.0])
    add(buffer, 1)
    # What is new has the largest priority, 9, to the same power.
    np.testing.assert_allclose(kept(buffer, 4), [3.0, 2.0, 1.0, 3.0])
