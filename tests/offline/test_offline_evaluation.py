"""Estimates of policies from recorded episodes, against known values."""

import gymnasium as gym
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.agents import OfflineEvaluation
from keras_rl2.offline.offline_evaluation import FittedQ
from support.errors import raises

GAMMA = 0.9
EPISODES = 400


class Corridor(gym.Env):
    """Five places; each step to the right pays 1, each to the left nothing."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)


def recorded(seed=0, terminated=True):
    """Episodes of four steps, of a policy that goes right half of the time."""
    rng = np.random.default_rng(seed)
    action = rng.integers(0, 2, (EPISODES, 4))
    place = np.tile(np.arange(4) / 4.0, (EPISODES, 1))
    last = np.tile(np.arange(4) == 3, EPISODES)
    none = np.zeros_like(last)
    observation = place.reshape(-1, 1).astype("float32")
    return rl.OfflineDataset(
        {
            "observations": observation,
            "next_observations": observation + np.float32(0.25),
            "actions": action.ravel(),
            "rewards": action.ravel().astype("float32"),
            "terminations": last if terminated else none,
            "truncations": none if terminated else last,
        },
        observation_space=Corridor.observation_space,
        action_space=Corridor.action_space,
    )


def policy(right, kind=rl.SAC, **settings):
    """An agent that goes right with a probability."""
    agent = kind.for_env(
        Corridor(), hidden=(4,), seed=0, gamma=GAMMA, **settings
    )
    weights = [np.zeros(w.shape) for w in agent.actor.get_weights()]
    weights[-1] = np.log([1.0 - right, right])
    agent.actor.set_weights(weights)
    return agent


def worth(right):
    """The exact value of going right with a probability."""
    return right * sum(GAMMA**step for step in range(4))


@pytest.mark.slow
def test_a_stochastic_policy_has_its_known_value():
    found = policy(0.9).evaluate(
        recorded(), updates=1500, deterministic=False, seed=1
    )
    assert found["fqe_value"] == pytest.approx(worth(0.9), abs=0.15)
    assert found["behavior_value"] == pytest.approx(worth(0.5), abs=0.15)


@pytest.mark.slow
def test_a_greedy_policy_has_its_known_value():
    agent = policy(0.6)
    # Right at the first place, where the hidden units are 0, then left: worth
    # one step, not what repeating it brings, nor what the data did next.
    kernel, bias, output, logits = agent.actor.get_weights()
    output = np.tile([0.0, -100.0], (len(output), 1))
    agent.actor.set_weights([np.ones_like(kernel), bias, output, logits])
    before = [w.copy() for w in agent.get_weights()]
    found = agent.evaluate(recorded(), updates=300)
    assert found["fqe_value"] == pytest.approx(1.0, abs=0.1)
    for one, other in zip(agent.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_fitted_values_follow_a_target_of_their_own():
    agent = policy(0.6)
    fitted = FittedQ(agent, deterministic=True, seed=0)
    for network, value in ((fitted._network, 5.0), (fitted._target, 10.0)):
        weights = [np.zeros(w.shape) for w in network.get_weights()]
        weights[-1] = np.full(2, value)
        network.set_weights(weights)
    offline = recorded(terminated=False)
    offline.bind(agent)
    fitted.fit(offline._block, updates=1, batch_size=32)
    # To 9 or 10 by the target; by itself, what pays nothing would fall to 4.5.
    assert (fitted._network.get_weights()[-1] > 5.0).all()


@pytest.mark.parametrize("terminated", [True, False])
def test_overestimation_by_hand(terminated):
    agent = policy(0.5)
    for critic in agent.critics:
        weights = [np.zeros(w.shape) for w in critic.get_weights()]
        weights[-1] = np.array([3.0, 3.0])
        critic.set_weights(weights)
    offline = recorded(terminated=terminated)
    found = agent.evaluate(offline, updates=0)
    reward = offline.recorded.reward.reshape(EPISODES, 4)
    to_go = np.zeros((EPISODES, 4))
    following = np.full(EPISODES, 0.0 if terminated else 3.0)
    for step in (3, 2, 1, 0):
        following = reward[:, step] + GAMMA * following * (
            not terminated or step < 3
        )
        to_go[:, step] = following
    expected = 3.0 - to_go.mean()
    assert found["q_overestimation"] == pytest.approx(expected, abs=1e-5)
    assert found["behavior_value"] == pytest.approx(to_go[:, 0].mean())
    assert sorted(found) == ["behavior_value", "q_overestimation"]


def test_other_agents():
    offline = recorded()
    for kind in (rl.DQN, rl.IQL):
        agent = kind.for_env(Corridor(), hidden=(4,), seed=0)
        assert "q_overestimation" in agent.evaluate(offline, updates=0)
    cloned = policy(0.5, rl.BehaviorCloning)
    found = cloned.evaluate(offline, updates=2, deterministic=False)
    assert "q_overestimation" not in found
    assert "fqe_value" in found


@pytest.mark.parametrize("kind", [rl.SAC, rl.IQL])
def test_each_critic_is_asked_of_the_actions_taken(kind):
    agent = policy(0.5, kind)
    place = np.array([[0.0], [0.5], [0.75]], "float32")
    found = agent.values_of_taken(place, np.array([1, 0, 1]))
    assert len(found) == 2
    for values, critic in zip(found, agent.critics, strict=True):
        every = np.array(critic(place))
        np.testing.assert_allclose(values, every[[0, 1, 2], [1, 0, 1]])


@pytest.mark.parametrize("distributional", [None, "quantile"])
def test_the_value_of_an_action_is_the_mean_of_its_distribution(distributional):
    agent = rl.DQN.for_env(
        Corridor(), hidden=(4,), distributional=distributional, seed=0
    )
    place = np.array([[0.0], [0.75]], "float32")
    (found,) = agent.values_of_taken(place, np.array([1, 0]))
    outputs = np.array(agent.q_network(place)).reshape(2, 2, -1)
    expected = outputs[[0, 1], [1, 0]].mean(axis=-1)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_numbers_are_valued_by_each_critic():
    agent = rl.TD3.for_env("Pendulum-v1", hidden=(4,), seed=0)
    place, action = tf.ones((2, 3)), tf.constant([[0.5], [-1.0]])
    found = agent.values_of_taken(place, action)
    assert len(found) == 2
    for values, critic in zip(found, agent.critics, strict=True):
        expected = np.array(critic([place, action]))[:, 0]
        np.testing.assert_allclose(values, expected)


@pytest.mark.parametrize("kind", [rl.BehaviorCloning, rl.PPO])
def test_without_critics_of_actions_there_are_no_values(kind):
    agent = kind.for_env(Corridor(), hidden=(4,), seed=0)
    place = np.zeros((2, 1), "float32")
    assert agent.values_of_taken(place, np.array([1, 0])) == []


@pytest.fixture(scope="module")
def swings():
    """Random swings of a pendulum."""
    return rl.record("random", "Pendulum-v1", 450, seed=0)


@pytest.mark.parametrize(
    ("kind", "deterministic"),
    [
        (rl.SAC, False),
        pytest.param(rl.TD3, True, marks=pytest.mark.slow),
    ],
)
def test_numbers_for_actions(kind, deterministic, swings):
    agent = kind.for_env("Pendulum-v1", hidden=(4,), seed=0)
    found = agent.evaluate(swings, updates=3, deterministic=deterministic)
    assert sorted(found) == [
        "behavior_value",
        "fqe_value",
        "q_overestimation",
    ]
    assert np.isfinite(list(found.values())).all()


def test_while_it_learns():
    offline = recorded()
    agent = rl.DQN.for_env(Corridor(), hidden=(4,), seed=0)
    agent.compile(run_eagerly=True)
    offline.updates_per_epoch, small = 2, recorded(seed=1)
    history = agent.fit(offline, validation_data=small, verbose=0).history
    assert np.isfinite(history["val_q_overestimation"]).all()
    assert "val_fqe_value" not in history
    longer = OfflineEvaluation(small, updates=2)
    history = agent.fit(offline, validation_data=longer, verbose=0).history
    assert "val_fqe_value" in history


def test_a_negative_number_of_updates_is_refused():
    agent = policy(0.5)
    with raises("`updates`", "-1"):
        agent.evaluate(recorded(), updates=-1)
