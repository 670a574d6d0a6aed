import json
import pathlib
import time

import numpy as np
import pytest

from keras_rl2.envs import RewardScaler
from keras_rl2.envs import RunningMoments

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "golden_vectors.json"


def golden(name):
    cases = json.loads(GOLDEN.read_text())["cases"]
    return next(case for case in cases if case["id"] == name)


def rollout(seed=0, steps=128, num_envs=8, dtype=np.float32):
    rng = np.random.default_rng(seed)
    rewards = rng.normal(1.0, 5.0, (steps, num_envs)).astype(dtype)
    ended = rng.uniform(size=rewards.shape) < 0.05
    valid = np.ones(rewards.shape, np.bool_)
    valid[1:] = ~ended[:-1]
    ended &= valid
    return rewards, ended, valid


def test_moments_golden():
    case = golden("running_mean_std/sb3")
    moments = RunningMoments((2,), epsilon=case["inputs"]["epsilon"])
    for batch in case["inputs"]["batches"]:
        moments.update(np.array(batch))
    expected = case["expected"]
    np.testing.assert_allclose(
        moments.mean, expected["mean"], **case["tolerance"]
    )
    np.testing.assert_allclose(
        moments.variance, expected["var"], **case["tolerance"]
    )
    np.testing.assert_allclose(
        moments.count, expected["count"], **case["tolerance"]
    )


def test_moments_do_not_depend_on_the_batches():
    data = np.random.default_rng(0).normal(3.0, 2.0, (60, 2))
    whole, parts = RunningMoments((2,)), RunningMoments((2,))
    whole.update(data)
    for part in np.split(data, [1, 2, 20, 20, 59]):
        parts.update(part)
    np.testing.assert_allclose(whole.mean, parts.mean, rtol=1e-12)
    np.testing.assert_allclose(whole.variance, parts.variance, rtol=1e-12)
    # The prior weighs 1e-4 of an example.
    np.testing.assert_allclose(whole.mean, data.mean(0), rtol=1e-5)


def test_moments_state_and_errors():
    moments = RunningMoments((2,))
    moments.update(np.array([[1.0, 2.0], [5.0, 4.0]]))
    other = RunningMoments((2,))
    other.set_state(moments.get_state())
    other.update(np.array([[0.0, 0.0]]))
    moments.update(np.array([[0.0, 0.0]]))
    np.testing.assert_array_equal(other.variance, moments.variance)
    with pytest.raises(ValueError, match="shape"):
        moments.update(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="shape"):
        moments.update(np.zeros(()))
    with pytest.raises(ValueError, match="shape"):
        RunningMoments().set_state(moments.get_state())
    with pytest.raises(ValueError, match="epsilon"):
        RunningMoments(epsilon=0.0)


def golden_scaler():
    case = golden("reward_norm/sb3_vecnormalize")
    inputs = case["inputs"]
    scaler = RewardScaler(
        inputs["gamma"], 2, clip=inputs["clip"], epsilon=inputs["epsilon"]
    )
    # The inputs are one row for each environment.
    rewards = np.array(inputs["rewards"]).T
    ended = np.array(inputs["dones"], np.bool_).T
    return case, scaler, rewards, ended


def test_scaler_golden_step_by_step():
    case, scaler, rewards, ended = golden_scaler()
    scaled = [scaler(rewards[t], ended[t]) for t in range(len(rewards))]
    expected = case["expected"]
    np.testing.assert_allclose(
        scaled, expected["normalized"], **case["tolerance"]
    )
    np.testing.assert_allclose(
        scaler.moments.variance, expected["ret_var"], **case["tolerance"]
    )


def test_scaler_golden_rollout():
    case, scaler, rewards, ended = golden_scaler()
    scaled = scaler.scale_rollout(rewards, ended)
    np.testing.assert_allclose(
        scaled, case["expected"]["normalized"], **case["tolerance"]
    )


@pytest.mark.parametrize("num_envs", [1, 2, 8, 65, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
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
    assert whole.moments.get_state() == single.moments.get_state()


def test_accumulator_never_crosses_an_episode():
    scaler = RewardScaler(0.9, 1)
    for ended in (False, False, True):
        scaler(np.ones(1), np.array([ended]))
    scaler(np.ones(1), np.array([False]))
    # 1 + 0.9 * 2.71 = 3.439 if it leaked.
    np.testing.assert_array_equal(scaler.returns, [1.0])


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
    assert masked.moments.get_state() == dense.moments.get_state()


def test_an_invalid_row_amid_an_episode_leaves_no_trace():
    scaler = RewardScaler(0.5, 1)
    scaler(np.array([4.0]), np.array([False]))
    moments = scaler.moments.get_state()
    scaler(np.array([7.0]), np.array([True]), np.array([False]))
    np.testing.assert_array_equal(scaler.returns, [4.0])
    assert scaler.moments.get_state() == moments


def test_invalid_environment_beside_valid_ones():
    # Hand-computed: only the 4 of the first environment counts, so n is
    # 1.0001, the mean 4 / 1.0001 and the variance as below.
    scaler = RewardScaler(0.5, 2)
    scaler(
        np.array([4.0, 7.0]), np.array([False, False]), np.array([True, False])
    )
    np.testing.assert_array_equal(scaler.returns, [4.0, 0.0])
    variance = (1e-4 + 16 * 1e-4 / 1.0001) / 1.0001
    np.testing.assert_allclose(scaler.moments.variance, variance, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1000.0])
def test_scale_of_rewards_does_not_matter(scale):
    # Probe 8. The prior and epsilon weigh next to nothing after one rollout.
    rewards, ended, valid = rollout(dtype=np.float64)
    plain, scaled = RewardScaler(0.99, 8), RewardScaler(0.99, 8)
    for _ in range(2):
        a = plain.scale_rollout(rewards, ended, valid)
        b = scaled.scale_rollout(scale * rewards, ended, valid)
    np.testing.assert_allclose(a, b, rtol=1e-3)


def test_clip_and_dtype():
    scaler = RewardScaler(0.9, 1, clip=0.5)
    scaled = scaler(np.array([100]), np.array([False]))
    assert scaled.dtype == np.float32
    np.testing.assert_array_equal(scaled, [0.5])


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


def test_a_reward_that_is_not_finite_changes_nothing():
    scaler = RewardScaler(0.99, 2)
    scaler(np.ones(2), np.zeros(2, np.bool_))
    before = json.dumps(scaler.get_state(), default=np.ndarray.tolist)
    with pytest.raises(ValueError, match="finite"):
        scaler(np.array([1.0, np.nan]), np.zeros(2, np.bool_))
    after = json.dumps(scaler.get_state(), default=np.ndarray.tolist)
    assert before == after


def test_a_reward_whose_square_is_not_finite_changes_nothing():
    scaler = RewardScaler(0.99, 2)
    scaler(np.ones(2), np.zeros(2, np.bool_))
    before = json.dumps(scaler.get_state(), default=np.ndarray.tolist)
    rewards = np.ones((3, 2))
    rewards[1, 1] = -1e200
    with pytest.raises(ValueError, match=r"1e\+200.*environment 1 at step 1"):
        scaler.scale_rollout(rewards, np.zeros((3, 2), np.bool_))
    after = json.dumps(scaler.get_state(), default=np.ndarray.tolist)
    assert before == after
    # Of float32 none is too large.
    scaled = scaler(np.array([1.0, 1e38], "float32"), np.zeros(2, np.bool_))
    assert np.isfinite(scaled).all()
    assert scaler.moments.is_finite


def test_examples_whose_squares_are_not_finite_change_nothing():
    moments = RunningMoments((2,))
    moments.update(np.ones((3, 2)))
    before = json.dumps(moments.get_state(), default=np.ndarray.tolist)
    with pytest.raises(ValueError, match=r"squares.*Received.*1e\+200"):
        moments.update(np.array([[1.0, 1.0], [1.0, 1e200]]))
    after = json.dumps(moments.get_state(), default=np.ndarray.tolist)
    assert before == after


def test_arguments_are_not_changed():
    arrays = rollout()
    copies = [array.copy() for array in arrays]
    RewardScaler(0.99, 8).scale_rollout(*arrays)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_errors():
    for arguments in (
        {"gamma": 1.1},
        {"gamma": -0.1},
        {"num_envs": 0},
        {"clip": 0.0},
        {"epsilon": 0.0},
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


@pytest.mark.benchmark
def test_rollout_takes_two_milliseconds():
    arrays = rollout()
    scaler = RewardScaler(0.99, 8)
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        scaler.scale_rollout(*arrays)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 2e-3
