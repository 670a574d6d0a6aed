"""What is read late is what was there when it was asked for."""

import copy

import numpy as np
import pytest

from keras_rl2.files import late_rows
from keras_rl2.files.late_rows import LateRows
from keras_rl2.replay.ring_arrays import RingArrays
from keras_rl2.spaces.array_spec import ArraySpec


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Four rows of two numbers each."""
    monkeypatch.setattr(late_rows, "_CHUNK_BYTES", 64)


def ring(rows=20):
    return np.stack([np.arange(rows), np.arange(rows)], axis=1)


def overwrite(array, late, row, count):
    late.keep(row, count)
    array[row : row + count] = -1


@pytest.mark.parametrize(("first", "count"), [(0, 20), (13, 20), (17, 6)])
@pytest.mark.parametrize("seed", range(5))
def test_overwritten_meanwhile(first, count, seed):
    generator = np.random.default_rng(seed)
    array = ring()
    late = LateRows(array, first, count)
    assert (late.shape, late.dtype) == ((count, 2), array.dtype)
    found = []
    for chunk in late.chunks():
        found.append(chunk.copy())
        assert len(chunk) <= 4
        for _ in range(3):
            row = int(generator.integers(17))
            overwrite(array, late, row, 3)
    expected = (first + np.arange(count)) % 20
    np.testing.assert_array_equal(np.concatenate(found)[:, 0], expected)
    assert (array == -1).any()


def test_only_what_is_not_read_is_kept():
    array = ring()
    late = LateRows(array, 0, 10)
    chunks = late.chunks()
    next(chunks)
    overwrite(array, late, 0, 6)
    overwrite(array, late, 15, 2)
    assert sorted(late._kept) == [4, 5]
    rest = np.concatenate([each.copy() for each in chunks])
    assert rest[:, 0].tolist() == [4, 5, 6, 7, 8, 9]
    overwrite(array, late, 4, 6)
    assert not late._kept


def test_rings_are_copied_as_before():
    arrays = RingArrays(
        4, 1, ArraySpec((), "int64"), {"reward": ((), np.float32)}, 0
    )
    rows = arrays.rows_from(3, 2)
    other = copy.deepcopy(arrays)
    given = {"observation": np.arange(4)[:, None] + 5}
    other.write(slice(0, 4), given, 0)
    arrays.write(slice(0, 4), given, 0)
    [found] = rows["observation"].chunks()
    assert found.tolist() == [[0], [0]]
    assert arrays["observation"].tolist() == [[5], [6], [7], [8]]
    rows = arrays.rows_from(0, 2)
    zeros = np.zeros((4, 1))
    arrays.set_first_rows({"observation": zeros, "reward": zeros})
    [found] = rows["observation"].chunks()
    assert found.tolist() == [[5], [6]]
    # Nobody is to read them any more.
    del rows
    arrays.write(slice(0, 1), given, 0)
    assert arrays._late == []
