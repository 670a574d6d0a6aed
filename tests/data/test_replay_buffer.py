"""The replay buffer: its transitions, their sources, and its size."""

import json

import numpy as np
import pytest

from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.saving import plain_data
from keras_rl2.spaces.array_spec import ArraySpec
from support.replay_reference import assert_holds
from support.replay_reference import expected_items
from support.replay_reference import part
from support.replay_reference import stream

GAMMA = 0.9


def make(capacity=100, num_envs=1, shape=(), dtype="float32", **settings):
    settings = {"gamma": GAMMA, "seed": 0, **settings}
    observation = ArraySpec(shape, dtype)
    return ReplayBuffer(
        capacity, num_envs, observation, (), np.int32, **settings
    )


def oldest_number(buffer, steps):
    """Returns the smallest number that has not been overwritten."""
    return steps * buffer.num_envs - buffer.capacity


def add_chain(buffer, rewards, terminated=(), truncated=(), first=0):
    """Adds steps of one environment whose observations count up."""
    for t, reward in enumerate(rewards, first):
        buffer.add(
            [t], [t], [reward], [t in terminated], [t in truncated], [1 > 0],
            [t + 1],
        )  # fmt: skip


def by_number(buffer):
    batch = buffer.sample(1024)
    return {
        int(i): {key: value[row] for key, value in batch.items()}
        for row, i in enumerate(batch["index"])
    }


def test_hand_computed_windows():
    buffer = make(n_step=3, gamma=0.5)
    add_chain(buffer, [1, 2, 4, 8, 16, 32], terminated=[1], truncated=[3])
    items = by_number(buffer)
    # Steps 4 and 5 have seen neither three rewards nor an end.
    assert sorted(items) == [0, 1, 2, 3]
    assert [float(items[i]["reward"]) for i in range(4)] == [2, 2, 8, 8]
    assert [float(items[i]["discount"]) for i in range(4)] == [0, 0, 0.25, 0.5]
    assert [int(items[i]["next_observation"]) for i in range(4)] == [2, 2, 4, 4]
    add_chain(buffer, [64], first=6)
    items = by_number(buffer)
    assert sorted(items) == [0, 1, 2, 3, 4]
    assert float(items[4]["reward"]) == 16 + 16 + 16
    assert float(items[4]["discount"]) == 0.125
    assert int(items[4]["next_observation"]) == 7


def test_the_largest_return_is_that_of_the_stored_steps():
    buffer = make(10, gamma=0.5)
    add_chain(buffer, [9, 0, 0, 0, 2, -2, 2], terminated=[3, 6])
    # Nine for each of four steps.
    expected = 9 * (1 + 0.5 + 0.25 + 0.125)
    assert buffer.largest_return() == pytest.approx(expected)
    add_chain(buffer, [1] * 7, truncated=[9, 11, 13], first=7)
    # Episodes of 3, 3, 2 and 2 steps are left, one of them terminated.
    expected = 2 * (1 + 0.5 + 0.25) / (1 - 0.75 * 0.125)
    assert buffer.largest_return() == pytest.approx(expected)
    # Steps without an end allow as much as an endless episode.
    endless = make(10, gamma=0.5)
    assert endless.largest_return() == 0.0
    add_chain(endless, [1.0] * 6)
    assert endless.largest_return() == pytest.approx(2.0)
    # Sums of three rewards allow a third of them in each step.
    sums = make(10, n_step=3, gamma=0.5)
    add_chain(sums, [7.0, 0.0, 0.0, 0.0, 0.0], terminated=[4])
    assert sums.largest_return() == pytest.approx(7 / 1.75 * 1.9375)


def test_batches_have_the_shapes_and_dtypes_that_are_documented():
    observation = ArraySpec((3, 4), "uint8")
    buffer = ReplayBuffer(8, 2, observation, (2,), np.float32, seed=0)
    frame = np.full((2, 3, 4), 255, np.uint8)
    flags = np.zeros(2, np.bool_)
    buffer.add(frame, np.ones((2, 2)), np.ones(2), flags, flags, ~flags, frame)
    batch = buffer.sample(5)
    assert {key: (v.shape, v.dtype.name) for key, v in batch.items()} == {
        "observation": ((5, 3, 4), "uint8"),
        "action": ((5, 2), "float32"),
        "reward": ((5,), "float32"),
        "discount": ((5,), "float32"),
        "next_observation": ((5, 3, 4), "uint8"),
        "index": ((5,), "int64"),
    }
    batch["observation"][:] = 0
    assert (buffer.sample(5)["observation"] == 255).all()


@pytest.mark.parametrize(
    ("n_step", "num_envs", "next_step", "longest"),
    [
        (1, 1, False, 4),
        (3, 3, True, 1),
        (6, 3, False, 90),
        pytest.param(3, 3, False, 4, marks=pytest.mark.slow),
        pytest.param(6, 1, True, 90, marks=pytest.mark.slow),
        pytest.param(1, 3, True, 90, marks=pytest.mark.slow),
    ],
)
def test_random_episodes(n_step, num_envs, next_step, longest):
    generator = np.random.default_rng([n_step, num_envs, next_step, longest])
    trajectory, truth = stream(generator, 220, num_envs, next_step)
    # A capacity that the number of environments does not divide.
    buffer = make(20 * num_envs + num_envs - 1, num_envs, (2,), n_step=n_step)
    assert buffer.capacity == 20 * num_envs
    start = 0
    while start < 220:
        stop = min(220, start + int(generator.integers(1, longest + 1)))
        buffer.extend(part(trajectory, start, stop))
        start = stop
        so_far = [
            [step for step in steps if step.index < stop * num_envs]
            for steps in truth
        ]
        items = expected_items(
            so_far, n_step, GAMMA, oldest_number(buffer, stop)
        )
        assert_holds(buffer, items, draws=2048)


@pytest.mark.parametrize("before", [0, 6, 50])
def test_draws_ahead_are_those_after_further_steps(before):
    trajectory, _ = stream(np.random.default_rng(0), 90, 2, False)
    alone, ahead = (make(40, 2, (2,)) for _ in range(2))
    for buffer in (alone, ahead):
        buffer.extend(part(trajectory, 0, before))
    expected, further = [], []
    for k in range(1, 5):
        stop = before + 10 * k
        alone.extend(part(trajectory, stop - 10, stop))
        expected.append(alone.sample(7))
        further.append(expected[-1]["index"] - 2 * before)
    found, its_further = ahead.sample_ahead(7, [20, 40, 60, 80])
    further = np.concatenate(further)
    assert its_further.tolist() == np.maximum(further, -1).tolist()
    known = further < 0
    assert known.any() or not before
    for key, value in found.items():
        each = np.concatenate([batch[key] for batch in expected])
        np.testing.assert_array_equal(value[known], each[known])
    # They go on with the same random numbers.
    ahead.extend(part(trajectory, before, before + 40))
    assert (
        alone.sample(9)["index"].tolist() == ahead.sample(9)["index"].tolist()
    )


def test_uniform_over_all_that_can_be_drawn():
    # 40 rows in a ring of 50; in NEXT_STEP some of them are mere resets.
    trajectory, truth = stream(np.random.default_rng(1), 50, 1, True)
    buffer = make(40, 1, (2,), n_step=2)
    buffer.extend(trajectory)
    items = expected_items(truth, 2, GAMMA, 10)
    draws = 200_000
    index, count = np.unique(buffer.sample(draws)["index"], return_counts=True)
    assert set(index.tolist()) == set(items)
    expected = draws / len(items)
    # Chi square: its standard deviation is sqrt(2 df).
    statistic = ((count - expected) ** 2 / expected).sum()
    freedom = len(items) - 1
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


def test_few_among_many_are_found():
    # The window is so long that 3 of 100 steps have theirs.
    buffer = make(100, n_step=98)
    add_chain(buffer, np.ones(100))
    assert len(buffer) == 3
    index, count = np.unique(buffer.sample(3000)["index"], return_counts=True)
    assert index.tolist() == [0, 1, 2]
    assert count.min() > 850


@pytest.mark.parametrize("n_step", [1, 3])
def test_an_episode_that_is_broken_off_counts_as_truncated(n_step):
    buffer = make(n_step=n_step, gamma=0.5)
    add_chain(buffer, [1, 2])
    buffer.cut()
    buffer.cut()
    # The environment was reset: the next observation is not 2 but 50.
    for t in (50, 51, 52):
        buffer.add([t], [0], [100.0], [False], [False], [True], [t + 1])
    items = by_number(buffer)
    assert int(items[1]["next_observation"]) == 2
    assert float(items[1]["reward"]) == 2
    assert float(items[1]["discount"]) == 0.5
    if n_step == 3:
        assert float(items[0]["reward"]) == 2
        assert float(items[0]["discount"]) == 0.25
        assert int(items[0]["next_observation"]) == 2
    assert int(items[2]["observation"]) == 50
    assert len(buffer) == (5 if n_step == 1 else 3)


def test_last_observations_outlive_a_reset_by_others():
    # NEXT_STEP: the row after an end is the end, unless it is replaced.
    buffer = make()
    observation = np.zeros(1)
    buffer.add(observation, [0], [1.0], [False], [True], [True], [1])
    # A copy was stored.
    observation[:] = 9.0
    # No reset row follows, as it would: `evaluate` has reset everything.
    buffer.cut()
    buffer.add([7], [0], [1.0], [False], [False], [True], [8])
    item = by_number(buffer)[0]
    assert (item["observation"], item["next_observation"]) == (0, 1)
    # SAME_STEP: the end is kept already, and not to be replaced.
    buffer = make()
    buffer.add([0], [0], [1.0], [True], [False], [True], [40], [1])
    buffer.cut()
    buffer.add([70], [0], [1.0], [False], [False], [True], [71])
    item = by_number(buffer)[0]
    assert (item["next_observation"], item["discount"]) == (1, 0)


def test_final_observations_are_those_of_their_steps():
    """Few episodes end at first, and then each step ends one."""
    buffer = make(60)
    for t in range(200):
        ended = t % 7 == 0 or t > 100
        final = [-t] if ended else None
        buffer.add([t], [0], [1.0], [ended], [False], [True], [t + 1], final)
        if t in (90, 110, 130, 199):
            for number, item in by_number(buffer).items():
                ended = number % 7 == 0 or number > 100
                following = -number if ended else number + 1
                assert item["next_observation"] == following


def test_state_goes_on_exactly():
    trajectory, truth = stream(np.random.default_rng(2), 130, 2, False)
    buffer, resumed = (make(60, 2, (2,), n_step=3) for _ in range(2))
    for start, stop in ((0, 20), (20, 75)):
        # Once partly filled, once after the ring has turned.
        buffer.extend(part(trajectory, start, stop))
        buffer.sample(10)
        state = buffer.get_state()
        taken, arrays = plain_data.to_json(state)
        text = json.dumps(taken)
        resumed.set_state(plain_data.from_json(json.loads(text), arrays))
        resumed.extend(part(trajectory, stop, 130))
        items = expected_items(truth, 3, GAMMA, oldest_number(buffer, 130))
        assert_holds(resumed, items)
    resumed.set_state(state)
    buffer.extend(part(trajectory, 75, 130))
    resumed.extend(part(trajectory, 75, 130))
    other = resumed.sample(64)
    for key, value in buffer.sample(64).items():
        np.testing.assert_array_equal(value, other[key])


def test_state_of_another_buffer_is_refused():
    buffer = make(60, 2, (2,), n_step=3)
    trajectory, _ = stream(np.random.default_rng(2), 10, 2, False)
    buffer.extend(trajectory)
    state = buffer.get_state()
    with pytest.raises(ValueError, match="n_step=2"):
        make(60, 2, (2,), n_step=2).set_state(state)
    with pytest.raises(ValueError, match="capacity=80"):
        make(80, 2, (2,), n_step=3).set_state(state)
    with pytest.raises(ValueError, match="Expected observation of shape"):
        make(60, 2, (3,), n_step=3).set_state(state)


@pytest.mark.parametrize(
    ("match", "arguments"),
    [
        (r"num_envs \* n_step = 3.*capacity=2", {"capacity": 2, "n_step": 3}),
        ("capacity=7", {"capacity": 7, "num_envs": 8}),
        ("num_envs=0", {"num_envs": 0}),
        ("n_step=0", {"n_step": 0}),
        ("gamma=1.1", {"gamma": 1.1}),
        ("gamma=nan", {"gamma": np.nan}),
    ],
)
def test_wrong_arguments(match, arguments):
    with pytest.raises(ValueError, match=match):
        make(**arguments)


def test_sampling_from_an_empty_buffer_is_refused():
    buffer = make(n_step=2)
    add_chain(buffer, [1.0])
    with pytest.raises(ValueError, match="0 transitions, of windows of n_step"):
        buffer.sample(1)
    add_chain(buffer, [1.0], first=1)
    with pytest.raises(ValueError, match="batch_size=0"):
        buffer.sample(0)


@pytest.mark.parametrize(
    ("position", "value", "match"),
    [
        (0, [[1.0]], "Expected observation of shape"),
        (0, [0.5], "dtype uint8"),
        (1, [0.5], "Expected action .*dtype int32"),
        (2, [[1.0]], "Expected"),
        (3, [True, False], "Expected"),
        (5, [True, False], "Expected valid"),
        (7, [[2]], "Expected final_observation of shape"),
    ],
)
def test_wrong_steps_leave_no_trace(position, value, match):
    buffer = make(dtype="uint8")
    byte = np.zeros(1, np.uint8)
    step = [byte, [0], [1.0], [True], [False], [True], byte, byte]
    if position == 0:
        step[6] = value
    step[position] = np.array(value)
    with pytest.raises(ValueError, match=match):
        buffer.add(*step)
    assert len(buffer) == 0


def test_final_observations_belong_to_ends():
    trajectory, _ = stream(np.random.default_rng(0), 30, 1, False)
    wrong = np.flatnonzero(~trajectory.ended)[:1]
    vars(trajectory)["final_index"] = wrong
    vars(trajectory)["final_observation"] = trajectory.final_observation[:1]
    with pytest.raises(ValueError, match="final_index to name steps that end"):
        make(shape=(2,)).extend(trajectory)


def test_frames_are_stored_once():
    """84x84x4 frames take at most 1.1 times their bytes."""
    frame, count = (84, 84, 4), 400
    buffer = make(count, 1, frame, "uint8")
    for t in range(2 * count):
        ended = t % 50 == 49
        before, after = (
            np.full((1, *frame), n % 251, np.uint8) for n in (t, t + 1)
        )
        final = after if ended else None
        buffer.add(before, [0], [0.0], [ended], [False], [True], after, final)
    frame_bytes = int(np.prod(frame))
    assert buffer.nbytes <= 1.1 * count * frame_bytes
    # What grows with the capacity: one frame and a few numbers a step.
    small, large = (make(n, 1, frame, "uint8").nbytes for n in (100, 200))
    assert (large - small) / 100 <= frame_bytes + 32


def test_refuses_more_than_the_machine_has(monkeypatch):
    with pytest.raises(MemoryError, match=r"GiB\. Received: .* GiB"):
        make(10**10, 1, (84, 84, 4), "uint8")
    monkeypatch.setattr("keras_rl2.data.memory.available_memory", lambda: 2**20)
    make(10_000)
    with pytest.raises(
        MemoryError, match=r"100000 trans.*0\.00 GiB.*0\.00 GiB"
    ):
        make(100_000)
    monkeypatch.setattr("keras_rl2.data.memory.available_memory", lambda: None)
    make(100_000)
