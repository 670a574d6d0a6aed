import contextlib
import json

import numpy as np
import pytest

from keras_rl2.envs import RewardScaler
from support.golden import load_cases


def golden(name):
    return next(case for case in load_cases() if case["id"] == name)


def text_of(state):
    return json.dumps(state.get_state(), default=np.ndarray.tolist)


@contextlib.contextmanager
def refused_without_a_trace(state, match):
    """Expects an error that leaves a state as it was."""
    before = text_of(state)
    with pytest.raises(ValueError, match=match):
        yield
    assert text_of(state) == before


def rollout(seed=0, steps=128, num_envs=8, dtype=np.float32):
    rng = np.random.default_rng(seed)
    rewards = rng.normal(1.0, 5.0, (steps, num_envs)).astype(dtype)
    ended = rng.uniform(size=rewards.shape) < 0.05
    valid = np.ones(rewards.shape, np.bool_)
    valid[1:] = ~ended[:-1]
    ended &= valid
    return rewards, ended, valid


def test_scaler_golden():
    case = golden("reward_norm/sb3_vecnormalize")
    inputs, expected = case["inputs"], case["expected"]
    single, whole = (
        RewardScaler(
            inputs["gamma"], 2, clip=inputs["clip"], epsilon=inputs["epsilon"]
        )
        for _ in range(2)
    )
    # The inputs are one row for each environment.
    rewards = np.array(inputs["rewards"]).T
    ended = np.array(inputs["dones"], np.bool_).T
    one_by_one = [single(*row) for row in zip(rewards, ended, strict=True)]
    for scaled in (one_by_one, whole.scale_rollout(rewards, ended)):
        np.testing.assert_allclose(
            scaled, expected["normalized"], **case["tolerance"]
        )
    np.testing.assert_allclose(
        single.moments.variance, expected["ret_var"], **case["tolerance"]
    )


@pytest.mark.parametrize(
    ("num_envs", "dtype"),
    [(1, np.float64), (8, np.float32), (65, np.float64), (300, np.float32)],
)
def test_rollout_equals_calls_bit_for_bit(num_envs, dtype):
    whole = RewardScaler(0.99, num_envs)
    single = RewardScaler(0.99, num_envs)
    for seed in range(2):
        rewards, ended, valid = rollout(seed, 32, num_envs, dtype)
        scaled = whole.scale_rollout(rewards, ended, valid)
        one_by_one = np.stack(
            [single(*row) for row in zip(rewards, ended, valid, strict=True)]
        )
        assert scaled.dtype == one_by_one.dtype == dtype
        np.testing.assert_array_equal(scaled, one_by_one)
    np.testing.assert_array_equal(whole.returns, single.returns)
    assert whole.moments == single.moments


def test_invalid_rows_leave_no_trace():
    rewards, ended, valid = rollout(0, 64, 1)
    assert not valid.all()
    masked, dense = RewardScaler(0.9, 1), RewardScaler(0.9, 1)
    spoilt = np.where(valid, rewards, np.float32(np.nan))
    scaled = masked.scale_rollout(spoilt, ended | ~valid, valid)
    keep = valid[:, 0]
    expected = dense.scale_rollout(rewards[keep], ended[keep])
    np.testing.assert_array_equal(scaled[keep], expected)
    np.testing.assert_array_equal(masked.returns, dense.returns)
    assert masked.moments == dense.moments


def test_state_goes_on_where_it_was():
    rewards, ended, valid = rollout()
    scaler, resumed = RewardScaler(0.99, 8), RewardScaler(0.99, 8)
    scaler.scale_rollout(rewards, ended, valid)
    state = scaler.get_state()
    expected = scaler.scale_rollout(rewards, ended, valid)
    resumed.set_state(state)
    np.testing.assert_array_equal(
        resumed.scale_rollout(rewards, ended, valid), expected
    )


def test_numbers_without_a_finite_square_change_nothing():
    scaler = RewardScaler(0.99, 2)
    no = np.zeros(2, np.bool_)
    scaler(np.ones(2), no)
    with refused_without_a_trace(scaler, "finite"):
        scaler(np.array([1.0, np.nan]), no)
    rewards = np.ones((3, 2))
    rewards[1, 1] = -1e200
    with refused_without_a_trace(scaler, r"1e\+200.*environment 1 at step 1"):
        scaler.scale_rollout(rewards, np.zeros((3, 2), np.bool_))
    # Of float32 none is too large.
    scaled = scaler(np.array([1.0, 1e38], "float32"), no)
    assert np.isfinite(scaled).all()
    assert np.isfinite(scaler.moments).all()
    late = warm_scaler()
    with refused_without_a_trace(late, r"1e\+200.*environment 0 at step 0"):
        late(np.array([1e200]), np.array([False]))


# Rewards that are far off.


def far_off(num_envs, steps):
    """Rollouts of normal rewards, of which some are another thing."""
    rewards, ended, valid = rollout(3, steps, num_envs, np.float64)
    for t, env, value in (
        (steps // 2, 0, 1e6),
        (steps // 2 + 1, num_envs - 1, -1e9),
        (steps - 3, 0, 1e4),
    ):
        rewards[t, env] = value
        valid[t, env] = True
    # Beyond all measure, but of steps that were only resets.
    rewards[~valid] = 1e12
    return rewards, ended, valid


@pytest.mark.parametrize("num_envs", [4, 2000])
def test_a_rollout_with_rewards_far_off_equals_calls_bit_for_bit(num_envs):
    whole, single = (RewardScaler(0.99, num_envs) for _ in range(2))
    steps = {4: 1000, 2000: 20}[num_envs]
    for _ in range(2):
        arrays = far_off(num_envs, steps)
        scaled = whole.scale_rollout(*arrays)
        one_by_one = [single(*row) for row in zip(*arrays, strict=True)]
        np.testing.assert_array_equal(scaled, one_by_one)
    np.testing.assert_array_equal(whole.returns, single.returns)
    assert whole.moments == single.moments
    assert whole.outliers.count == single.outliers.count >= 4


def warm_scaler(count=40_000, **arguments):
    """A scaler that has seen returns -1 and 1, each in half of `count`."""
    scaler = RewardScaler(0.0, 1, **arguments)
    scaler.moments = scaler.moments.merged(0.0, 1.0, count)
    return scaler


@pytest.mark.parametrize(
    ("count", "deviations", "reward"),
    [(1000, 1000**0.5, -1e12), (40_000, 100.0, 1e6)],
)
def test_a_reward_far_off_counts_like_one_at_the_limit(
    count, deviations, reward
):
    scaler, at_limit = (warm_scaler(count) for _ in range(2))
    scaled = scaler(np.array([reward]), np.array([False]))
    at_limit(np.sign([reward]) * deviations, np.array([False]))
    for name in ("mean", "variance"):
        np.testing.assert_allclose(
            *(getattr(x.moments, name) for x in (scaler, at_limit)), rtol=1e-6
        )
    assert scaler.moments.variance < 1.0 + 1.01 * min(1.0, 100.0**2 / count)
    assert scaled == 10.0 * np.sign(reward)
    assert scaler.outliers.count == 1
    assert scaler.outliers.newest == (
        f"reward={reward:g} from environment 0 at step 0 of its rollout"
    )


def test_without_a_limit_or_early_on_each_reward_is_taken_in():
    for scaler in (warm_scaler(max_deviations=None), warm_scaler(998)):
        scaler(np.array([1e6]), np.array([False]))
        assert scaler.moments.variance > 1e7
        assert scaler.outliers.count == 0


@pytest.mark.parametrize(
    ("num_envs", "factor", "expected"),
    [
        (1, 0.95, 0),
        (1, 1.05, 1),
        (300, 0.95, 0),
        (300, 1.05, 1),
    ],
)
def test_rewards_just_beyond_the_limit_are_counted(num_envs, factor, expected):
    """The outlier is within a rollout, whose largest number is tested first."""
    scaler = RewardScaler(0.0, num_envs)
    scaler.moments = scaler.moments.merged(0.0, 1.0, 40_000)
    rewards = np.resize([-1.0, 1.0], (8, num_envs))
    rewards[5, -1] = 100.0 * factor
    scaler.scale_rollout(rewards, np.zeros((8, num_envs)))
    assert scaler.outliers.count == expected


def test_outlying_rewards_are_left_out_of_the_sum():
    """The sum would be an outlier for 1000 steps, and each would count."""
    scaler = RewardScaler(0.99, 2)
    rewards, ended, _ = rollout(0, 4000, 2, np.float64)
    scaler.scale_rollout(rewards, ended)
    scaler.begin(np.ones(2, np.bool_))
    no = np.zeros(2, np.bool_)
    for reward in ([1.0, 2.0], [1e6, 3.0], [4.0, 5.0]):
        scaler(np.array(reward), no)
    np.testing.assert_allclose(
        scaler.returns, [0.99**2 + 4.0, 2 * 0.99**2 + 3 * 0.99 + 5.0]
    )
    # Not from the episode before.
    scaler(np.array([-1e6, 0.0]), ~no)
    np.testing.assert_array_equal(scaler.returns, [0.0, 0.0])
    assert scaler.outliers.count == 2


def test_the_first_reward_is_no_outlier_however_late():
    """While all returns are 0, nothing is known of their scale."""
    plain, scaler = (
        RewardScaler(0.99, 4, max_deviations=most) for most in (None, 100.0)
    )
    rewards, ended = np.zeros((5000, 4)), np.zeros((5000, 4))
    rewards[4999, 1] = 1.0
    ended[499::500] = True
    a, b = (x.scale_rollout(rewards, ended) for x in (plain, scaler))
    np.testing.assert_array_equal(a, b)
    assert scaler.outliers.count == 0


def test_rewards_that_have_grown_for_good_are_followed():
    """The new level is 1e4 deviations away."""
    scaler = warm_scaler(20_000)
    rewards = 1e4 + np.resize([-1.0, 1.0], (400, 1))
    scaled = scaler.scale_rollout(rewards, np.zeros((400, 1)))
    outliers = scaler.outliers.count
    # ln(1e4) / ln(1 + 100**2 / 20_000) = 23 of them.
    assert 15 < outliers < 30
    # Of which 1 % of all are below `clip`.
    assert scaled[-1] < 10.0
    scaler.scale_rollout(rewards, np.zeros((400, 1)))
    assert scaler.outliers.count == outliers


def test_the_number_of_outlying_rewards_is_saved():
    scaler, resumed = (warm_scaler(2000) for _ in range(2))
    scaler(np.array([1e6]), np.array([False]))
    state = scaler.get_state()
    resumed.set_state(state)
    assert resumed.outliers.count == 1


def test_errors():
    for arguments in (
        {"gamma": 1.1},
        {"gamma": -0.1},
        {"num_envs": 0},
        {"clip": 0.0},
        {"epsilon": 0.0},
        {"max_deviations": 0.0},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(arguments))}="):
            RewardScaler(**{"gamma": 0.9, "num_envs": 2, **arguments})
    scaler = RewardScaler(0.9, 2)
    with pytest.raises(ValueError, match="2 environments"):
        scaler(np.ones(3), np.zeros(3, np.bool_))
    with pytest.raises(ValueError, match="2 environments"):
        scaler.scale_rollout(np.ones((4, 2)), np.zeros((4, 1), np.bool_))
    with pytest.raises(ValueError, match="2 environments"):
        scaler.set_state(RewardScaler(0.9, 3).get_state())
