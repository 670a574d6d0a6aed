import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from keras_rl2.envs import as_vector_env
from support.transitions import play
from support.vector_envs import coin


def assert_cart_pole_physics(transitions, limit, both=True):
    """Asserts that each transition is one that CartPole can make.

    Args:
        transitions: Those of one environment.
        limit: Number of steps after which an episode is truncated.
        both: Whether a pole that falls in just that step is also terminated.
    """
    cart = gymnasium.make("CartPole-v1").unwrapped
    cart.reset(seed=0)
    length = 0
    for now, action, reward, terminated, truncated, after in transitions:
        if length == 0:
            assert (np.abs(now) <= 0.05).all()
        length += 1
        cart.state = now.astype(np.float64)
        cart.steps_beyond_terminated = None
        expected, _, fallen, _, _ = cart.step(int(action))
        np.testing.assert_allclose(after, expected, atol=2e-5)
        assert reward == 1.0
        assert truncated == (length == limit)
        assert terminated == (fallen and (both or not truncated))
        if terminated or truncated:
            length = 0


def test_native_cart_pole():
    env = as_vector_env(
        gymnasium.make_vec("CartPole-v1", num_envs=5, max_episode_steps=10)
    )
    assert env.masks_reset_rows
    assert env.observation_space.shape == (4,)
    for transitions in play(env, 60, coin):
        assert len(transitions) >= 50
        assert_cart_pole_physics(transitions, limit=10)


def make_envpool(task, **kwargs):
    envpool = pytest.importorskip("envpool")
    return envpool.make(task, env_type="gymnasium", **kwargs)


def test_envpool_cart_pole():
    raw = make_envpool("CartPole-v1", num_envs=5, seed=3, max_episode_steps=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = as_vector_env(raw)
        played = play(env, 60, coin, seed=1)
    assert env.masks_reset_rows
    assert (env.num_envs, env.observation_space.shape) == (5, (4,))
    assert env.action_space == spaces.Discrete(2)
    for transitions in played:
        assert len(transitions) >= 50
        assert_cart_pole_physics(transitions, limit=10, both=False)
    env.close()


def test_envpool_behind_a_wrapper_and_of_other_spaces():
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(
        make_envpool("CartPole-v1", num_envs=2)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_vector_env(env).reset(seed=1).shape == (2, 4)
    env.close()
    env = as_vector_env(make_envpool("FrozenLake-v1", num_envs=2))
    assert play(env, 10, coin)[0][0][0].dtype == np.int32
    env.close()
    env = as_vector_env(
        make_envpool("HalfCheetah-v4", num_envs=2, max_episode_steps=4)
    )
    transitions = play(env, 10, lambda *_: np.zeros(6, np.float32))[0]
    assert [t[4] for t in transitions] == ([False] * 3 + [True]) * 2
    env.close()


def test_envpool_modes_that_do_not_fit_are_refused():
    env = make_envpool("CartPole-v1", num_envs=4, batch_size=2)
    with pytest.raises(ValueError, match="'batch_size': 2"):
        as_vector_env(env)
    envpool = pytest.importorskip("envpool")
    with pytest.raises(ValueError, match="env_type='gymnasium'"):
        as_vector_env(envpool.make("CartPole-v1", env_type="dm", num_envs=2))
