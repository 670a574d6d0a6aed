"""Evaluation plays the requested episodes, and counts no others."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import keras_rl2 as rl
from support import vector_envs
from support.agents import AGENTS
from support.agents import make_agent
from support.agents import make_env
from support.probe_envs import CountingEnv

PPO = AGENTS["PPO"]


def counted_return(index, episode, length):
    """Returns the return of one episode of `CountingEnv`."""
    steps = np.arange(1, length + 1)
    return float(np.sum(100.0 * index + 10.0 * episode + steps))


def test_evaluation_plays_the_requested_number_of_episodes():
    agent = make_agent(PPO, CountingEnv())

    def make():
        return CountingEnv(0, tuple(range(1, 9)), (False,) * 8)

    for episodes, shares in (
        (10, (2, 2, 3, 3)),
        (8, (2, 2, 2, 2)),
        (2, (0, 0, 1, 1)),
        (3, (3,)),
    ):
        results = agent.evaluate(make, episodes=episodes, num_envs=len(shares))
        # The first ones of each environment, which are of 1, 2, 3, ... steps.
        played = [episode for share in shares for episode in range(share)]
        assert len(played) == episodes
        returns = [
            counted_return(0, episode, episode + 1) for episode in played
        ]
        assert results == {
            "episode_return": pytest.approx(np.mean(returns)),
            "episode_return_std": pytest.approx(np.std(returns)),
            "episode_length": pytest.approx(np.mean(played) + 1),
        }, shares


@pytest.mark.parametrize("mode", vector_envs.MODES, ids=lambda m: m.name)
def test_the_last_environments_play_one_more(mode):
    env = vector_envs.sync(CountingEnv, mode, num_envs=4)
    agent = make_agent(PPO, env)
    results = agent.evaluate(env, episodes=10)
    # Episodes of 3, 1 and 5 steps.
    returns = [
        counted_return(index, episode, (3, 1, 5)[episode])
        for index, share in enumerate((2, 2, 3, 3))
        for episode in range(share)
    ]
    assert results["episode_return"] == pytest.approx(np.mean(returns))
    assert results["episode_return_std"] == pytest.approx(np.std(returns))
    assert results["episode_length"] == pytest.approx((9 + 9 + 4 + 4) / 10)


@pytest.mark.parametrize("careless", vector_envs.CARELESS)
def test_rewards_of_mere_resets_are_not_counted(careless):
    env = careless(CountingEnv, num_envs=2)
    agent = make_agent(PPO, env)
    results = agent.evaluate(env, episodes=6)
    careful = vector_envs.sync(CountingEnv, AutoresetMode.NEXT_STEP, 2)
    assert results == agent.evaluate(careful, episodes=6)


def test_evaluation_counts_no_environment_more_often():
    """Episodes of 1 step and of 9: each environment plays its half."""
    makers = [lambda: CountingEnv(0, (1,)), lambda: CountingEnv(1, (9,))]
    env = gymnasium.vector.SyncVectorEnv(makers)
    agent = make_agent(PPO, rl.envs.as_vector_env(env))
    results = agent.evaluate(env, episodes=6)
    assert results["episode_length"] == pytest.approx(5.0)
    short = [10.0 * episode + 1 for episode in range(3)]
    long = [9 * (100 + 10.0 * episode) + 45 for episode in range(3)]
    assert results["episode_return"] == pytest.approx(np.mean(short + long))
    assert results["episode_return_std"] == pytest.approx(np.std(short + long))


def test_evaluation_can_be_stochastic_and_is_seeded():
    env = make_env("act_box")
    agent = make_agent(PPO, env)
    greedy = agent.evaluate(env, episodes=4, seed=0)
    drawn = [
        agent.evaluate(env, episodes=4, deterministic=False, seed=s)
        for s in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1]
    assert drawn[0]["episode_return"] != drawn[2]["episode_return"]
    assert drawn[0]["episode_return"] != greedy["episode_return"]


def test_a_reused_dataset_evaluates_the_present_weights():
    env = make_env("act_box")
    agent = make_agent(PPO, env)

    def make():
        return rl.EvaluationDataset(make_env("act_box"), 2, seed=0)

    episodes = make()
    before = agent.evaluate(episodes)
    # The episodes repeat: only the weights can change the result.
    assert agent.evaluate(episodes) == before
    for variable in agent.actor.trainable_variables:
        variable.assign(variable + 1.0)
    after = agent.evaluate(episodes)
    assert after["episode_return"] != before["episode_return"]
    assert after == agent.evaluate(make())


def test_episodes_that_do_not_end_warn(monkeypatch):
    monkeypatch.setattr("keras_rl2.data.evaluation._MANY_STEPS", 20)
    agent = make_agent(PPO, CountingEnv())
    with pytest.warns(UserWarning, match="No episode of .* in 20 steps"):
        agent.evaluate(CountingEnv(0, (30,), (False,)), episodes=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.evaluate(CountingEnv(0, (5, 30), (False, False)), episodes=2)
