import math

import numpy as np
import pytest
import tensorflow as tf

from keras_rl2 import losses

PAIRS = {
    "policy_gradient": lambda a, b: losses.policy_gradient(a, b),
    "clipped_surrogate": lambda a, b: losses.clipped_surrogate(a, b, a, 0.2),
    "clipped_value": lambda a, b: losses.clipped_value(a, a, b, 0.2),
    "approximate_kl": lambda a, b: losses.approximate_kl(a, b),
    "clip_fraction": lambda a, b: losses.clip_fraction(a, b, 0.2),
}


def gradient(function, value):
    """Return the gradient of the sum of a function's result."""
    value = tf.constant(value)
    with tf.GradientTape() as tape:
        tape.watch(value)
        total = tf.reduce_sum(function(value))
    return tape.gradient(
        total, value, unconnected_gradients=tf.UnconnectedGradients.ZERO
    ).numpy()


@pytest.mark.parametrize("name", PAIRS)
def test_column_beside_flat_is_refused(name):
    flat, column = np.ones(4), np.ones((4, 1))
    for arrays in ((flat, column), (column, flat)):
        with pytest.raises(ValueError, match="squeeze the last axis"):
            PAIRS[name](*arrays)
    with pytest.raises(ValueError, match="expected rank 1"):
        PAIRS[name](column, column)
    with pytest.raises(ValueError, match="expected equal shapes"):
        PAIRS[name](flat, np.ones(3))


@pytest.mark.parametrize("name", PAIRS)
def test_per_example_and_precision(name):
    for dtype, expected in (
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float64", "float64"),
    ):
        arrays = [tf.cast([-0.5, -1.0, -2.0], dtype)] * 2
        result = PAIRS[name](*arrays)
        assert result.shape == (3,)
        assert result.dtype == expected


def test_policy_gradient_raises_the_probability_of_good_actions():
    log_prob, advantage = [-1.0, -1.0], tf.constant([2.0, -3.0])
    slope = gradient(lambda x: losses.policy_gradient(x, advantage), log_prob)
    assert slope.tolist() == [-2.0, 3.0]
    held = gradient(
        lambda x: losses.policy_gradient(tf.constant(log_prob), x), [2.0, -3.0]
    )
    assert not np.any(held)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope"),
    [
        (1.0, 1.0, -1.0, -1.0),
        (1.1, 1.0, -1.1, -1.1),
        (1.5, 1.0, -1.2, 0.0),  # already far enough: no more reward
        (0.5, 1.0, -0.5, -0.5),  # wrong way: not clipped
        (0.5, -1.0, 0.8, 0.0),
        (1.5, -1.0, 1.5, 1.5),
    ],
)
def test_clipped_surrogate_by_hand(ratio, advantage, loss, slope):
    def function(log_prob):
        return losses.clipped_surrogate(log_prob, [0.0], [advantage], 0.2)

    log_prob = [math.log(ratio)]
    np.testing.assert_allclose(function(log_prob), [loss], rtol=1e-6)
    np.testing.assert_allclose(gradient(function, log_prob), [slope], rtol=1e-6)


def test_first_pass_of_ppo():
    log_prob = np.array([-0.1, -2.0, -700.0])
    advantage = np.array([1.0, -1.0, 0.5])
    loss = losses.clipped_surrogate(log_prob, log_prob, advantage, 0.2)
    np.testing.assert_allclose(loss, -advantage, rtol=1e-12)
    assert not np.any(losses.approximate_kl(log_prob, log_prob))
    assert not np.any(losses.clip_fraction(log_prob, log_prob, 0.2))


def test_clip_ratio_may_be_a_tensor():
    log_prob, old = [0.3, -0.3], [0.0, 0.0]
    for function in (
        lambda clip: losses.clipped_surrogate(log_prob, old, [1.0, 1.0], clip),
        lambda clip: losses.clipped_value(log_prob, old, [1.0, 1.0], clip),
        lambda clip: losses.clip_fraction(log_prob, old, clip),
    ):
        np.testing.assert_array_equal(function(0.2), function(tf.constant(0.2)))
        with pytest.raises(ValueError, match="expected rank 0"):
            function(np.array([0.2, 0.2]))


@pytest.mark.parametrize(
    ("value", "loss", "slope"),
    [(0.1, 0.81, -1.8), (0.5, 0.64, 0.0), (3.0, 4.0, 4.0), (-0.5, 2.25, -3.0)],
)
def test_clipped_value_by_hand(value, loss, slope):
    def function(value):
        return losses.clipped_value(value, [0.0], [1.0], 0.2)

    np.testing.assert_allclose(function([value]), [loss], rtol=1e-6)
    np.testing.assert_allclose(gradient(function, [value]), [slope], rtol=1e-6)


def test_huber_has_unit_slope_beyond_delta():
    error = [-5.0, -0.5, 0.0, 0.5, 5.0]
    np.testing.assert_allclose(
        gradient(lambda e: losses.huber(e, 2.0), error),
        [-2.0, -0.5, 0.0, 0.5, 2.0],
    )


def test_expectile_of_one_half_is_half_the_square():
    error = np.linspace(-2.0, 2.0, 9)
    np.testing.assert_allclose(losses.expectile(error, 0.5), 0.5 * error**2)


def test_expectile_is_fitted():
    rng = np.random.default_rng(0)
    targets = rng.standard_normal(20_000)
    grid = np.linspace(-2.0, 2.0, 401)
    loss = [np.mean(losses.expectile(targets - m, 0.9)) for m in grid]
    # The 0.9 expectile of the standard normal distribution.
    assert abs(grid[np.argmin(loss)] - 0.8616) < 0.03


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
