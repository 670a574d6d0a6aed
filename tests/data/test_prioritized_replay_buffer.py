"""Prioritized replay: probabilities, weights, and stored transitions."""

import keras
import numpy as np
import pytest

from keras_rl2.data.prioritized_replay_buffer import PrioritizedReplayBuffer
from keras_rl2.spaces.array_spec import ArraySpec
from support.replay_reference import assert_holds
from support.replay_reference import expected_items
from support.replay_reference import part
from support.replay_reference import stream

GAMMA = 0.9


def make(capacity=100, num_envs=1, shape=(), **settings):
    settings = {"gamma": GAMMA, "seed": 0, **settings}
    observation = ArraySpec(shape, "float32")
    return PrioritizedReplayBuffer(
        capacity, num_envs, observation, (), np.int32, **settings
    )


def filled(count, **settings):
    """Returns a buffer with `count` steps of one long episode."""
    buffer = make(**settings)
    add(buffer, 0, count)
    return buffer


def add(buffer, first, count):
    for t in range(first, first + count):
        buffer.add([t], [0], [1.0], [False], [False], [True], [t + 1])


def frequencies(buffer, size, draws=150_000, batch_size=250):
    counts = np.zeros(size)
    for _ in range(draws // batch_size):
        index = buffer.sample(batch_size)["index"]
        counts += np.bincount(index, minlength=size)
    return counts / draws


def kept(buffer, count):
    """Returns the priorities that a buffer keeps."""
    return buffer.get_state()["priority"].ravel()[:count]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
def test_every_transition_is_drawn_with_its_probability(alpha):
    buffer = filled(10, capacity=10, alpha=alpha)
    td_error = np.arange(10) + 5.0
    buffer.update_priorities(np.arange(10), -td_error)
    probability = (td_error + 1e-6) ** alpha
    probability /= probability.sum()
    # The newest one, of the largest priority, is the last: 9.
    np.testing.assert_allclose(frequencies(buffer, 10), probability, rtol=0.01)


def test_priorities_by_hand():
    """Each is (|error| + epsilon)^alpha."""
    buffer = filled(3, alpha=0.5, epsilon=1.0)
    # The first have a priority of 1, for want of any error.
    np.testing.assert_allclose(kept(buffer, 3), [1.0, 1.0, 1.0])
    buffer.update_priorities([0, 1, 2], [-8.0, 3.0, 0.0])
    # No error leaves epsilon, so that it can still be drawn.
    np.testing.assert_allclose(kept(buffer, 3), [3.0, 2.0, 1.0])
    # What is new has the largest priority so far, 9, to the same power,
    # though no transition has it any more.
    buffer.update_priorities([0], [0.0])
    add(buffer, 3, 1)
    np.testing.assert_allclose(kept(buffer, 4), [1.0, 2.0, 1.0, 3.0])
    assert buffer.largest_priority == 9.0


def test_hand_computed_weights():
    buffer = filled(3, alpha=1.0, beta=0.5, epsilon=1e-9)
    buffer.update_priorities([0, 1, 2], [1.0, 4.0, 16.0])
    batch = buffer.sample(210)
    assert np.bincount(batch["index"]).tolist() == [10, 40, 160]
    expected = np.array([1.0, 0.5, 0.25])[batch["index"]]
    np.testing.assert_allclose(batch["weight"], expected, rtol=1e-6)
    assert batch["weight"].dtype == np.float32
    # Of the batch, not of the buffer.
    buffer.update_priorities([0], [0.0])
    assert buffer.sample(2)["weight"].max() == 1.0


def test_beta_may_be_a_schedule_of_the_batches():
    seen = []

    def beta(step):
        seen.append(step)
        return 0.25 * step

    buffer = filled(2, alpha=1.0, beta=beta, epsilon=1e-9)
    buffer.update_priorities([0, 1], [1.0, 16.0])
    weights = [buffer.sample(34)["weight"].min() for _ in range(3)]
    np.testing.assert_allclose(weights, [1.0, 0.5, 0.25], rtol=1e-6)
    assert seen == [0, 1, 2]
    schedule = keras.optimizers.schedules.PolynomialDecay(0.4, 2, 1.0)
    buffer = filled(2, alpha=1.0, beta=schedule, epsilon=1e-9)
    buffer.update_priorities([0, 1], [1.0, 16.0])
    weights = [buffer.sample(34)["weight"].min() for _ in range(4)]
    expected = 16.0 ** -np.array([0.4, 0.7, 1.0, 1.0])
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


@pytest.mark.parametrize(("n_step", "next_step"), [(1, True), (3, False)])
def test_random_episodes(n_step, next_step):
    generator = np.random.default_rng([n_step, next_step])
    trajectory, truth = stream(generator, 150, 2, next_step)
    buffer = make(50, 2, (2,), n_step=n_step)
    start = 0
    while start < 150:
        stop = min(150, start + int(generator.integers(1, 12)))
        buffer.extend(part(trajectory, start, stop))
        start = stop
        so_far = [[s for s in steps if s.index < stop * 2] for steps in truth]
        items = expected_items(so_far, n_step, GAMMA, stop * 2 - 50)
        assert_holds(buffer, items, draws=1024)
        if items:
            index = buffer.sample(16)["index"]
            buffer.update_priorities(index, generator.uniform(0.5, 2.0, 16))


def test_priorities_of_overwritten_steps_are_ignored():
    buffer = filled(4, capacity=4, alpha=1.0)
    add(buffer, 4, 2)
    # 0 and 1 are overwritten by 4 and 5, whose priority is still 1.
    buffer.update_priorities([0, 1, 2, 3], [9.0, 9.0, 3.0, 3.0])
    expected = np.array([0, 0, 3, 3, 1, 1]) / 8
    np.testing.assert_allclose(
        frequencies(buffer, 6), expected, rtol=0.01, atol=1e-6
    )
    assert buffer.largest_priority == pytest.approx(3.0)


def test_waiting_transitions_are_never_drawn():
    buffer = filled(5, n_step=3)
    buffer.update_priorities([3, 4], [100.0, 100.0])
    assert set(buffer.sample(300)["index"].tolist()) == {0, 1, 2}
    assert buffer.largest_priority == 1.0


def test_state_goes_on_exactly():
    trajectory, _ = stream(np.random.default_rng(2), 120, 2, False)
    settings = {"n_step": 2, "beta": lambda step: 0.1 * step}
    buffer, resumed = (make(60, 2, (2,), **settings) for _ in range(2))
    buffer.extend(part(trajectory, 0, 70))
    batch = buffer.sample(32)
    buffer.update_priorities(batch["index"], np.arange(32.0))
    buffer.extend(part(trajectory, 70, 75))
    resumed.set_state(buffer.get_state())
    for one in (buffer, resumed):
        one.extend(part(trajectory, 75, 90))
    other = resumed.sample(64)
    for key, value in buffer.sample(64).items():
        np.testing.assert_array_equal(value, other[key])
    assert resumed.largest_priority == buffer.largest_priority
    with pytest.raises(ValueError, match=r"alpha=0\.5"):
        make(60, 2, (2,), n_step=2, alpha=0.5).set_state(buffer.get_state())


def test_wrong_arguments():
    for match, settings in (
        ("alpha=-0.1", {"alpha": -0.1}),
        ("alpha=nan", {"alpha": np.nan}),
        ("beta=-1.0", {"beta": -1.0}),
        ("epsilon=0.0", {"epsilon": 0.0}),
        ("capacity=2", {"capacity": 2, "n_step": 3}),
    ):
        with pytest.raises(ValueError, match=match):
            make(**settings)
    buffer = filled(5)
    for td_error in (np.nan, np.inf):
        with pytest.raises(ValueError, match="finite TD errors"):
            buffer.update_priorities([0], [td_error])
    # Transitions that do not exist are left out.
    buffer.update_priorities([5, -1], [7.0, 7.0])
    assert buffer.largest_priority == 1.0


def test_the_tree_counts_as_memory(monkeypatch):
    plain = 10_001 * (4 + 4 + 4 + 4 + 4)
    monkeypatch.setattr(
        "keras_rl2.data.memory.available_memory", lambda: plain + 10_000
    )
    with pytest.raises(MemoryError, match="10000 transitions"):
        make(10_000)
