"""The ring of steps: its places, and rows that are read late."""

import copy
import weakref

import numpy as np
import pytest

from keras_rl2.data import ring as ring_module
from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.data.ring import LateRows
from keras_rl2.data.ring import Ring
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


@pytest.fixture
def small_chunks(monkeypatch):
    """Lets rows be read in chunks of four rows of two numbers."""
    monkeypatch.setattr(ring_module, "_CHUNK_BYTES", 64)


def rows_to_read(rows=20):
    return np.stack([np.arange(rows), np.arange(rows)], axis=1)


def overwrite(array, late, row, count):
    late.keep(row, count)
    array[row : row + count] = -1


@pytest.mark.parametrize(("first", "count"), [(0, 20), (13, 20), (17, 6)])
@pytest.mark.usefixtures("small_chunks")
def test_rows_overwritten_meanwhile_are_read_as_they_were(first, count):
    for seed in range(5):
        generator = np.random.default_rng(seed)
        array = rows_to_read()
        late = LateRows(array, first, count)
        assert (late.shape, late.dtype) == ((count, 2), array.dtype)
        found = []
        for chunk in late.chunks():
            found.append(chunk.copy())
            assert len(chunk) <= 4
            for _ in range(3):
                overwrite(array, late, int(generator.integers(17)), 3)
        expected = (first + np.arange(count)) % 20
        np.testing.assert_array_equal(np.concatenate(found)[:, 0], expected)
        assert (array == -1).any()


def kept(late):
    """Returns the numbers of the rows that are held for a reader."""
    return sorted(late._kept)


@pytest.mark.usefixtures("small_chunks")
def test_only_what_is_not_read_is_kept():
    array = rows_to_read()
    late = LateRows(array, 0, 10)
    chunks = late.chunks()
    next(chunks)
    overwrite(array, late, 0, 6)
    overwrite(array, late, 15, 2)
    # Of the two rows that are not read yet.
    assert kept(late) == [4, 5]
    rest = np.concatenate([each.copy() for each in chunks])
    assert rest[:, 0].tolist() == [4, 5, 6, 7, 8, 9]
    overwrite(array, late, 4, 6)
    assert not kept(late)


@pytest.mark.usefixtures("small_chunks")
def test_rings_are_copied_as_before():
    def write(ring, *numbers):
        """Steps that see all but the last number, which follows them."""
        flags = np.zeros((len(numbers) - 1, 1), np.bool_)
        given = {
            "observation": np.array(numbers)[:, None],
            **dict.fromkeys(("ended", "terminated", "valid"), flags),
            "reward": flags.astype(np.float32),
        }
        index = np.empty(0, np.int64)
        ring.write(given, {}, index, 0, len(numbers) - 1)

    def read(rows):
        return [n for c in rows["observation"].chunks() for n in c[:, 0]]

    one = Ring(3, 1, ArraySpec((), "int64"), {})
    write(one, 1, 2, 3, 4)
    rows = one.steps_from(2)
    other = copy.deepcopy(one)
    # The last row, of the step after the newest one, and then the first.
    for each in (other, one):
        write(each, 5, 6)
        write(each, 7, 8, 9)
    assert read(rows) == [3, 4]
    state, rows = one.get_state(), one.steps_from(4)
    assert state["observation"][:, 0].tolist() == [7, 8, 9, 5]
    one.set_state({**state, "observation": np.zeros((4, 1))})
    assert one.arrays["observation"].tolist() == [[0]] * 4
    assert read(rows) == [7, 8, 9]
    # Nobody is to read them any more.
    gone = weakref.ref(rows["observation"])
    del rows
    write(one, 1, 2)
    assert gone() is None
    assert not one._late
