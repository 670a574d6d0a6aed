"""V-trace's three limits, each where it belongs."""

import numpy as np
import pytest

from keras_rl2 import returns

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


@pytest.mark.parametrize("lambda_", [1.0, 0.7])
def test_vtrace_by_loop(lambda_):
    arrays, truncated = trajectory()
    actual = returns.vtrace(
        **arrays, lambda_=lambda_, truncated=truncated, **LIMITS
    )
    expected = by_loop(arrays, truncated, lambda_, **LIMITS)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("limit", "expected"),
    # Two steps of ratio 4, TD errors of 1 and discounts of 1/2; the targets
    # of both and the advantage of the first, at limits of 2.
    [
        ("clip_rho", ([[2.0 + 0.5 * 4.0 * 2.0], [2.0]], 4.0 * 2.0)),
        ("clip_c", ([[4.0 + 0.5 * 2.0 * 4.0], [4.0]], 4.0 * 3.0)),
        ("clip_pg_rho", ([[4.0 + 0.5 * 4.0 * 4.0], [4.0]], 2.0 * 3.0)),
    ],
)
def test_each_limit_is_of_its_own_factor(limit, expected):
    column = np.ones((2, 1))
    targets, advantages = returns.vtrace(
        np.log(4.0) * column,
        rewards=column,
        discounts=0.5 * column,
        values=0.0 * column,
        next_values=0.0 * column,
        **{**dict.fromkeys(LIMITS, 9.0), limit: 2.0},
    )
    np.testing.assert_allclose(targets, expected[0])
    np.testing.assert_allclose(advantages[0], [expected[1]])
