import math

import numpy as np
import pytest
import tensorflow as tf

from keras_rl2 import losses
from support.gradients import gradient


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
