import numpy as np
import pytest
import tensorflow as tf

from keras_rl2 import losses
from keras_rl2.losses import statistics


def test_weighted_mean():
    values = np.array([1.0, 3.0, 9.0])
    assert float(statistics.weighted_mean(values, np.ones(3))) == 13 / 3
    assert float(statistics.weighted_mean(values, np.array([1.0, 0, 1]))) == 5.0


def test_mean_of_nothing_is_0():
    assert float(statistics.weighted_mean(np.ones(3), np.zeros(3))) == 0.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normalize_equals_numpy(dtype):
    values = np.random.default_rng(0).normal(5, 3, 50).astype(dtype)
    weight = (np.arange(50) < 40).astype("float32")
    normal = statistics.normalize(values, weight).numpy()
    expected = (values - values[:40].mean()) / (values[:40].std() + 1e-8)
    np.testing.assert_allclose(normal, expected, rtol=1e-4)
    assert normal.dtype == dtype


def test_a_single_value_is_not_normalised():
    weight = np.array([0.0, 1.0], "float32")
    normal = statistics.normalize(np.array([7.0, 3.0], "float32"), weight)
    assert normal.numpy()[1] == 3.0
    one = statistics.normalize(np.array([3.0], "float32"), np.ones(1))
    np.testing.assert_array_equal(one, [3.0])


def test_equal_values_become_0():
    normal = statistics.normalize(np.full(4, 3.0, "float32"), np.ones(4))
    np.testing.assert_array_equal(normal, np.zeros(4))


def test_weights_of_zero_give_finite_values():
    values = np.array([1.0, 2.0], "float32")
    normal = statistics.normalize(values, np.zeros(2, "float32"))
    assert np.isfinite(normal.numpy()).all()


@pytest.mark.parametrize("function", ["weighted_mean", "normalize"])
def test_shapes_are_never_broadcast(function):
    flat, column = np.ones(3), np.ones((3, 1))
    for arrays in ((column, flat), (flat, column)):
        with pytest.raises(ValueError, match=r"Expected.*Received"):
            getattr(statistics, function)(*arrays)


def test_approximate_kl_is_unbiased_and_precise():
    rng = np.random.default_rng(0)
    sample = rng.standard_normal(200_000)
    shift = 0.3
    old = -0.5 * sample**2
    new = -0.5 * (sample - shift) ** 2
    kl = losses.approximate_kl(new, old).numpy()
    assert kl.min() >= 0.0
    np.testing.assert_allclose(kl.mean(), shift**2 / 2, rtol=0.02)
    tiny = losses.approximate_kl(np.float32([1e-4]), np.float32([0.0]))
    np.testing.assert_allclose(tiny, [5.0e-9], rtol=2e-2)


def test_clip_fraction_counts_both_sides():
    log_prob = np.log([0.7, 0.85, 1.0, 1.15, 1.3])
    marks = losses.clip_fraction(log_prob, np.zeros(5), 0.2)
    assert marks.numpy().tolist() == [1.0, 0.0, 0.0, 0.0, 1.0]


def test_explained_variance():
    values, targets = np.random.default_rng(0).standard_normal((2, 6, 3))
    result = losses.explained_variance(values, targets)
    expected = 1 - np.var(targets - values) / np.var(targets)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert losses.explained_variance(targets, targets) == 1.0
    np.testing.assert_allclose(
        losses.explained_variance(targets + 5.0, targets), 1.0
    )


def test_explained_variance_leaves_out_weight_0():
    values, targets = np.random.default_rng(0).standard_normal((2, 10))
    weights = np.arange(10) < 7
    targets[7:] = 1e6
    np.testing.assert_allclose(
        losses.explained_variance(values, targets, weights),
        losses.explained_variance(values[:7], targets[:7]),
        rtol=1e-9,
    )


def test_explained_variance_of_constant_returns_is_nan():
    values = np.arange(7, dtype="float32")
    constant = np.full(7, 0.1, dtype="float32")
    assert np.isnan(losses.explained_variance(values, constant))
    assert np.isnan(losses.explained_variance(values, values, np.zeros(7)))


def test_the_explained_variance_needs_no_infinity():
    """A constant one would stop every PPO that is checked for NaN."""
    explain = tf.function(losses.explained_variance, autograph=False)
    tf.debugging.enable_check_numerics()
    try:
        found = explain(tf.constant([1.0, 2.0]), tf.constant([1.0, 3.0]))
    finally:
        tf.debugging.disable_check_numerics()
    assert float(found) == 0.75
