"""Keras' global seed repeats a program that passes no seeds."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.basics import seeds
from support.agents import assert_equal_weights
from support.agents import differ


def trained(algorithm):
    env_id = "CartPole-v1" if algorithm == "PPO" else "Pendulum-v1"
    agent = getattr(rl, algorithm).for_env(env_id, hidden=(8,))
    if algorithm == "PPO":
        dataset = rl.RolloutDataset(
            env_id, num_envs=2, horizon=16, batch_size=16, passes=1
        )
    else:
        dataset = rl.ReplayDataset(
            env_id,
            num_envs=2,
            steps_per_round=8,
            warm_up=16,
            capacity=200,
            batch_size=8,
            updates_per_round=2,
            rounds_per_epoch=1,
        )
    agent.fit(dataset, epochs=1, verbose=0)
    return agent


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize(
    "algorithm", ["PPO", pytest.param("SAC", marks=pytest.mark.slow)]
)
def test_the_global_seed_repeats_a_training(algorithm):
    agents = []
    for seed in (5, 5, 6):
        keras.utils.set_random_seed(seed)
        agents.append(trained(algorithm))
    assert_equal_weights(agents[0], agents[1])
    assert differ(agents[0].get_weights(), agents[2].get_weights())
    assert agents[0].seed is None


def test_the_global_seed_repeats_episodes_and_actions():
    returns, actions = [], []
    observation = np.zeros((64, 4), np.float32)
    for seed in (5, 5, 6):
        keras.utils.set_random_seed(seed)
        agent = rl.A2C.for_env("CartPole-v1", hidden=(8,))
        episodes = rl.EvaluationDataset(
            "CartPole-v1", episodes=5, deterministic=False
        )
        returns.append([episodes.play(agent) for _ in range(2)])
        actions.append(agent.act(observation, deterministic=False).tolist())
    assert returns[0] == returns[1]
    assert returns[0] != returns[2]
    # A seed that was not given is not one that repeats.
    assert returns[0][0] != returns[0][1]
    assert actions[0] == actions[1]
    assert actions[0] != actions[2]


def test_an_evaluation_takes_nothing_from_the_global_seed():
    agent = rl.A2C.for_env("CartPole-v1", hidden=(8,), seed=0)
    episodes = rl.EvaluationDataset("CartPole-v1", episodes=1)
    keras.utils.set_random_seed(5)
    expected = seeds.or_drawn(None)
    keras.utils.set_random_seed(5)
    episodes.play(agent)
    assert seeds.or_drawn(None) == expected


def test_a_seed_that_is_given_is_kept_and_others_differ():
    assert seeds.or_drawn(7) == 7
    drawn = seeds.sequence(7).generate_state(3)
    expected = np.random.SeedSequence(7).generate_state(3)
    np.testing.assert_array_equal(drawn, expected)
    expected = np.random.default_rng(7).integers(1000)
    assert seeds.generator(7).integers(1000) == expected
    assert len({seeds.or_drawn(None) for _ in range(8)}) == 8
    one, two = seeds.generator(None), seeds.generator(None)
    assert one.normal() != two.normal()
