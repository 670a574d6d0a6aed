"""Weighted importance sampling by hand, and beside what it estimates."""

import numpy as np
import pytest
import tensorflow as tf

from keras_rl2 import returns
from support.errors import raises


def test_by_hand():
    ratio = np.array([[2.0, 0.5, 1.0], [3.0, 1.0, 0.5]])
    reward = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = returns.weighted_importance_sampling(np.log(ratio), reward, 0.9)
    # Weights 2, 1/2, 1, then 6, 1/2, 1/2.
    expected = [6.0 / 3.5, 0.9 * (24.0 + 2.5 + 3.0) / 7.0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_own_policy_gets_the_mean_return():
    reward = np.array([[1.0, 3.0], [2.0, 0.0]])
    found = returns.weighted_importance_sampling(np.zeros((2, 2)), reward, 0.5)
    np.testing.assert_allclose(found, [2.0, 0.5])


def test_long_episodes_do_not_overflow():
    found = returns.weighted_importance_sampling(
        np.full((2000, 3), 5.0), np.ones((2000, 3)), 0.99
    )
    expected = (1 - 0.99**2000) / 0.01
    assert float(np.sum(found)) == pytest.approx(expected, rel=1e-4)


def test_a_bandit_is_valued_as_it_is():
    rng, count = np.random.default_rng(0), 200_000
    action = rng.integers(0, 2, count)  # β is uniform
    reward = action + rng.normal(size=count)
    ratio = np.where(action == 1, 0.9, 0.1) / 0.5
    found = returns.weighted_importance_sampling(
        np.log(ratio)[None], reward[None], 1.0
    )
    assert float(found[0]) == pytest.approx(0.9, abs=0.02)


def test_precision_and_shapes():
    for dtype, expected in (("float16", "float32"), ("float64", "float64")):
        arrays = [tf.zeros((2, 3), dtype)] * 2
        found = returns.weighted_importance_sampling(*arrays, 0.9)
        assert found.dtype == expected
        assert found.shape == (2,)
    with raises("rank 2", ""):
        returns.weighted_importance_sampling(np.zeros(3), np.zeros(3), 0.9)
    with raises("equal shapes", ""):
        returns.weighted_importance_sampling(
            np.zeros((2, 3)), np.zeros((3, 2)), 0.9
        )


def test_sizes_need_not_be_known():
    unknown = tf.TensorSpec([None, None])
    traced = tf.function(
        lambda *arrays: returns.weighted_importance_sampling(*arrays, 0.5),
        input_signature=[unknown, unknown],
    )
    found = traced(tf.zeros((3, 2)), tf.ones((3, 2)))
    np.testing.assert_allclose(found, [1.0, 0.5, 0.25])
