"""The sum tree against sums made by hand and by NumPy."""

import numpy as np
import pytest

from keras_rl2.data.prioritized_replay_buffer import SumTree

# One level, an odd number of items on several levels, and a few more.
SIZES = [1, 7, 8193, 50_001]


def test_hand_computed_sums():
    tree = SumTree(5)
    tree.update([0, 1, 2, 3, 4], [1.0, 0.0, 2.0, 0.5, 4.0])
    assert tree.total == 7.5
    queries = [0.0, 0.99, 1.0, 2.99, 3.0, 3.49, 3.5, 7.49, 7.5]
    assert tree.find(queries).tolist() == [0, 0, 2, 2, 3, 3, 4, 4, 4]
    tree.update([4], [0.0])
    assert tree.total == 3.5
    assert tree.find([3.5]).tolist() == [3]
    assert tree.get([0, 4]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("size", SIZES)
def test_agrees_with_a_plain_cumulative_sum(size):
    generator = np.random.default_rng(size)
    tree, values = SumTree(size), np.zeros(size)
    for _ in range(5):
        index = generator.integers(0, size, 1 + size // 2)
        # Small integers: all sums are exact.
        value = generator.integers(0, 4, index.size).astype(float)
        tree.update(index, value)
        values[index] = value
    values[-1] = 1.0
    tree.update([size - 1], [1.0])
    assert tree.total == values.sum()
    query = np.arange(values.sum())
    expected = np.searchsorted(np.cumsum(values), query, side="right")
    np.testing.assert_array_equal(tree.find(query), expected)
    np.testing.assert_array_equal(tree.get(np.arange(size)), values)


@pytest.mark.parametrize("size", SIZES)
def test_never_returns_an_item_of_value_0(size):
    generator = np.random.default_rng(size)
    tree = SumTree(size)
    # Of all magnitudes, so that rounding does its worst.
    value = 10.0 ** generator.uniform(-12, 3, size)
    value[generator.random(size) < 0.7] = 0.0
    value[size // 2] = 1e-3
    tree.update(np.arange(size), value)
    sums = np.cumsum(value)
    queries = np.concatenate(
        [sums, np.nextafter(sums, 0), generator.uniform(0, tree.total, 20_000)]
    )
    found = tree.find(np.clip(queries, 0.0, tree.total))
    assert (tree.get(found) > 0).all()
    assert found.max() < size


def test_no_rounding_error_builds_up():
    generator = np.random.default_rng(0)
    tree, values = SumTree(20_000), np.zeros(20_000)
    for _ in range(500):
        index = generator.integers(0, 20_000, 256)
        value = 10.0 ** generator.uniform(-8, 8, 256)
        tree.update(index, value)
        values[index] = value
    np.testing.assert_allclose(tree.total, values.sum(), rtol=1e-13)
    tree.update(np.arange(20_000), 0.0)
    assert tree.total == 0.0


def test_the_last_of_equal_indices_counts():
    tree = SumTree(3)
    tree.update([1, 1, 1], [5.0, 6.0, 2.0])
    assert (tree.total, tree.get([1]).tolist()) == (2.0, [2.0])


def test_samples_are_stratified_and_repeat():
    tree = SumTree(10_000)
    tree.update([3, 9_999], [3.0, 1.0])
    drawn = tree.sample(8, np.random.default_rng(0))
    assert drawn.tolist() == [3] * 6 + [9_999] * 2
    tree.update(np.arange(10_000), np.random.default_rng(1).random(10_000))
    one, other = (tree.sample(64, np.random.default_rng(2)) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_an_empty_tree_refuses_to_draw():
    with pytest.raises(ValueError, match="capacity=0"):
        SumTree(0)
    for function, *arguments in (
        (SumTree(4).find, [0.0]),
        (SumTree(4).sample, 1, np.random.default_rng(0)),
    ):
        with pytest.raises(IndexError):
            function(*arguments)
