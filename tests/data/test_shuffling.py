"""Rows are dealt out whole, once in each pass, in an order of its own."""

import numpy as np
import pytest

from keras_rl2.data.rollouts import shuffled_rows

PASSES, MINIBATCHES, BATCH_SIZE = 3, 4, 5


def dealt(valid, seed=0):
    rows, weight = shuffled_rows(
        valid, np.random.default_rng(seed), PASSES, MINIBATCHES, BATCH_SIZE
    )
    assert rows.shape == weight.shape == (PASSES * MINIBATCHES, BATCH_SIZE)
    return rows, weight


@pytest.mark.parametrize("count", [20, 17, 4, 3, 1, 0])
def test_each_pass_deals_each_row_once_and_evenly(count):
    # Of 40 samples so many are transitions.
    order = np.random.default_rng(1).permutation(np.arange(40))
    valid = np.sort(order[:count])
    rows, weight = dealt(valid)
    assert set(np.unique(weight)) <= {0.0, 1.0}
    for one_pass in range(PASSES):
        part = slice(one_pass * MINIBATCHES, (one_pass + 1) * MINIBATCHES)
        counted = rows[part][weight[part] == 1.0]
        np.testing.assert_array_equal(np.sort(counted), valid)
        counts = weight[part].sum(axis=1)
        assert counts.max() - counts.min() <= 1, count


def test_each_pass_has_an_order_of_its_own():
    rows, _ = dealt(np.arange(20))
    orders = rows.reshape(PASSES, -1)
    assert len({tuple(order) for order in orders}) == PASSES
    assert (rows != dealt(np.arange(20), seed=1)[0]).any()
