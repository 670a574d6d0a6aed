"""Environments in the graph, as any other vector environment."""

import gymnasium
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.envs.graph.classic_control import CartPole
from keras_rl2.envs.graph.graph_env import make_graph_env


def played(env, steps=40):
    """Returns observations and rewards of steps with the same actions."""
    generator = np.random.default_rng(0)
    found = []
    for _ in range(steps):
        observation, reward, *_ = env.step(generator.integers(2, size=3))
        found.append([*observation.ravel(), *reward])
    return np.array(found)


@pytest.fixture(scope="module")
def env():
    return rl.envs.GraphVectorEnv("CartPole-v1", num_envs=3)


def test_a_seed_repeats_an_episode(env):
    first, info = env.reset(seed=5)
    assert info == {}
    once = played(env)
    again, _ = env.reset(seed=5)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(once, played(env))
    # The next environment has the next seed, and is like no other.
    other, _ = env.reset(seed=[6, 7, 5])
    np.testing.assert_array_equal(other, first[[1, 2, 0]])
    assert len(np.unique(first, axis=0)) == 3
    # A reset without a seed goes on from the last one.
    firsts = []
    for _ in range(2):
        env.reset(seed=5)
        firsts.append([env.reset()[0] for _ in range(2)])
    np.testing.assert_array_equal(firsts[0], firsts[1])
    assert not np.array_equal(firsts[0][0], firsts[0][1])


def test_an_episode_ends_with_its_last_observation():
    env = rl.envs.GraphVectorEnv(CartPole(max_episode_steps=5), num_envs=2)
    env.reset(seed=0)
    for step in range(1, 12):
        observation, _, terminated, truncated, info = env.step(
            np.array([step % 2, (step + 1) % 2])
        )
        assert truncated.tolist() == [step % 5 == 0] * 2
        assert not terminated.any()
        assert ("final_obs" in info) == (step % 5 == 0)
        if info:
            assert info["_final_obs"].all()
            assert not np.array_equal(info["final_obs"], observation)
            assert (np.abs(observation) <= 0.05).all()


def test_its_state_is_saved_and_restored_bit_for_bit(env):
    other = rl.envs.GraphVectorEnv("CartPole-v1", num_envs=3)
    env.reset(seed=3)
    played(env, 20)
    other.set_state(env.get_state())
    np.testing.assert_array_equal(played(env), played(other))


def test_invalid_ids_arguments_and_seeds_are_refused():
    with pytest.raises(ValueError, match="Expected one of"):
        make_graph_env("CartPole-v0")
    with pytest.raises(ValueError, match="an id, a `GraphEnv`"):
        make_graph_env(lambda: gymnasium.make("CartPole-v1"))
    with pytest.raises(ValueError, match="takes `env_kwargs`"):
        make_graph_env(CartPole(), {"max_episode_steps": 3})
    with pytest.raises(ValueError, match="a seed for each of 2"):
        rl.envs.GraphVectorEnv("CartPole-v1", 2).reset(seed=[1])
