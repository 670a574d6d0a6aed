"""Returns of data that another policy has collected."""

import numpy as np
import pytest
import tensorflow as tf

from keras_rl2 import returns
from support.errors import raises

LIMITS = {"clip_rho": 2.0, "clip_c": 1.25, "clip_pg_rho": 3.0}


def trajectory(length=7, num_envs=3):
    """Returns arrays whose ratios lie below, between and above the limits."""
    rng = np.random.default_rng(0)
    shape = (length, num_envs)
    arrays = {
        "log_ratios": rng.uniform(np.log(0.5), np.log(5.0), shape),
        "rewards": rng.standard_normal(shape),
        "discounts": 0.9 * (rng.random(shape) > 0.1),
        "values": rng.standard_normal(shape),
        "next_values": rng.standard_normal(shape),
    }
    return arrays, rng.random(shape) < 0.2


def by_loop(arrays, truncated, lambda_, clip_rho, clip_c, clip_pg_rho):
    """Goes backwards, one step and one environment at a time."""
    targets, advantages = (np.zeros_like(arrays["rewards"]) for _ in range(2))
    length, num_envs = targets.shape
    for b in range(num_envs):
        trace, later = 0.0, arrays["next_values"][-1, b]
        for t in reversed(range(length)):
            reward, discount, value, following = (
                arrays[key][t, b]
                for key in ("rewards", "discounts", "values", "next_values")
            )
            if truncated[t, b]:
                trace, later = 0.0, following
            ratio = np.exp(arrays["log_ratios"][t, b])
            error = min(clip_rho, ratio) * (
                reward + discount * following - value
            )
            mixed = (1.0 - lambda_) * following + lambda_ * later
            advantages[t, b] = min(clip_pg_rho, ratio) * (
                reward + discount * mixed - value
            )
            trace = error + discount * lambda_ * min(clip_c, ratio) * trace
            targets[t, b] = later = value + trace
    return targets, advantages


@pytest.mark.parametrize("lambda_", [0.0, 0.7, 1.0])
def test_vtrace_on_policy_is_the_lambda_return(lambda_):
    arrays, cut = trajectory()
    arrays["log_ratios"] = np.zeros_like(arrays["log_ratios"])
    values, next_values = arrays["values"], arrays["next_values"]
    following = np.concatenate([values[1:], next_values[-1:]])
    arrays["next_values"] = np.where(cut, next_values, following)
    targets, advantages = returns.vtrace(
        **arrays, lambda_=lambda_, truncated=cut
    )
    gae, expected = returns.generalized_advantage_estimation(
        *[*arrays.values()][1:], lambda_, cut
    )
    np.testing.assert_allclose(targets, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(advantages, gae, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("lambda_", [1.0, 0.7])
def test_vtrace_by_loop(lambda_):
    arrays, truncated = trajectory()
    actual = returns.vtrace(
        **arrays, lambda_=lambda_, truncated=truncated, **LIMITS
    )
    expected = by_loop(arrays, truncated, lambda_, **LIMITS)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_weighted_importance_sampling_by_hand():
    ratio = np.array([[2.0, 0.5, 1.0], [3.0, 1.0, 0.5]])
    reward = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    found = returns.weighted_importance_sampling(np.log(ratio), reward, 0.9)
    # Weights 2, 1/2, 1, then 6, 1/2, 1/2.
    expected = [6.0 / 3.5, 0.9 * (24.0 + 2.5 + 3.0) / 7.0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_weighted_importance_sampling_of_long_episodes():
    found = returns.weighted_importance_sampling(
        np.full((2000, 3), 5.0), np.ones((2000, 3)), 0.99
    )
    expected = (1 - 0.99**2000) / 0.01
    assert float(np.sum(found)) == pytest.approx(expected, rel=1e-4)


def test_weighted_importance_sampling_checks_shapes():
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


def test_weighted_importance_sampling_of_unknown_sizes():
    unknown = tf.TensorSpec([None, None])
    traced = tf.function(
        lambda *arrays: returns.weighted_importance_sampling(*arrays, 0.5),
        input_signature=[unknown, unknown],
    )
    found = traced(tf.zeros((3, 2)), tf.ones((3, 2)))
    np.testing.assert_allclose(found, [1.0, 0.5, 0.25])
