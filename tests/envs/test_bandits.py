import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from keras_rl2.envs import GaussianBanditEnv
from keras_rl2.envs import GaussianBanditVectorEnv

ID = "keras_rl2/GaussianBandit-v0"
FORMS = [
    {},
    {"contextual": False},
    {"reward": "payoff"},
    {"means": (1.0, 5.0, -2.0), "deviations": (0.5, 0.0, 3.0)},
]


def test_payoffs_are_those_of_the_question():
    env = gymnasium.make_vec(ID, num_envs=500)
    payoffs = np.concatenate(
        [env.reset(seed=0)[0], *(env.reset()[0] for _ in range(39))]
    )
    # Five standard errors of the mean; 2.5 per cent of the deviation.
    np.testing.assert_allclose(payoffs[:, 0].mean(), 10.0, atol=5 * 15 / 141)
    np.testing.assert_allclose(payoffs[:, 1].mean(), 0.0, atol=5 / 141)
    np.testing.assert_allclose(payoffs.std(axis=0), [15.0, 1.0], rtol=0.025)


def test_reward_is_for_the_best_arm_whatever_it_pays():
    env = GaussianBanditEnv()
    lost = 0
    for seed in range(40):
        for arm, expected in ((0, 1.0), (1, 0.0)):
            payoffs, _ = env.reset(seed=seed)
            observation, reward, terminated, truncated, _ = env.step(arm)
            assert (reward, terminated, truncated) == (expected, True, False)
            np.testing.assert_array_equal(observation, payoffs)
        lost += payoffs[0] < payoffs[1]
    assert lost > 0


@pytest.mark.parametrize("form", FORMS)
def test_vector_is_gymnasiums_own_vector_of_the_same_seeds(form):
    native = gymnasium.make_vec(ID, num_envs=5, **form)
    peer = gymnasium.make_vec(
        ID,
        num_envs=5,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        **form,
    )
    assert isinstance(native.unwrapped, GaussianBanditVectorEnv)
    assert native.observation_space == peer.observation_space
    assert native.action_space == peer.action_space
    rng = np.random.default_rng(0)
    # At last more pulls than are drawn at once.
    for seed, pulls in ((7, 5), (None, 5), ([4, 3, 9, 1, 0], 300)):
        expected, actual = (env.reset(seed=seed)[0] for env in (peer, native))
        np.testing.assert_array_equal(actual, expected)
        assert actual.dtype == expected.dtype
        for _ in range(pulls):
            action = rng.integers(native.single_action_space.n, size=5)
            *expected, their_info = peer.step(action)
            *actual, info = native.step(action)
            for ours, theirs in zip(actual, expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)
            np.testing.assert_array_equal(
                info["final_obs"], np.stack(list(their_info["final_obs"]))
            )
            assert info["_final_obs"].all()


@pytest.mark.parametrize("make", [GaussianBanditEnv, GaussianBanditVectorEnv])
def test_wrong_arguments_and_actions(make):
    for means, deviations in (
        ((1.0,), (1.0,)),
        ((1.0, 2.0), (1.0,)),
        ((1.0, np.nan), (1.0, 1.0)),
        ((1.0, 2.0), (1.0, -1.0)),
        (((1.0, 2.0),), ((1.0, 1.0),)),
    ):
        with pytest.raises(ValueError, match="a deviation of at least 0"):
            make(means=means, deviations=deviations)
    with pytest.raises(ValueError, match="Received: reward='mean'"):
        make(reward="mean")
    env = make()
    right = np.zeros(1, np.int64) if hasattr(env, "num_envs") else 0
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(right)
    env.reset(seed=0)
    for wrong in (-1, 2):
        with pytest.raises(ValueError, match="Received: "):
            env.step(right + wrong)


def test_a_pull_is_an_episode():
    env = GaussianBanditEnv()
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    with pytest.raises(ValueError, match="Expected 3 seeds"):
        GaussianBanditVectorEnv(3).reset(seed=[1, 2])
