"""A conversion serves equal policies, and no others."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.data import ActorSnapshot
from keras_rl2.policies import actors as conversions


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(conversions, "_conversions", {})


@pytest.fixture
def converted(monkeypatch):
    """The functions that have been converted."""
    functions = []
    convert = conversions.convert

    def counted(function):
        functions.append(function)
        return convert(function)

    monkeypatch.setattr(conversions, "convert", counted)
    return functions


def ppo(seed=0, hidden=(4,), activation="tanh", **kwargs):
    return rl.PPO.for_env(
        "Pendulum-v1", hidden=hidden, activation=activation, seed=seed, **kwargs
    )


def act(agent, actor):
    observation = np.ones((2, 3), "float32")
    noise, _ = agent.noise.draw(np.random.default_rng(0), (2,))
    return actor(observation, noise)[0], agent.sample_action(observation, noise)


def test_agents_alike_share_one_and_act_each_for_itself(converted):
    agents = [ppo(seed) for seed in range(3)]
    actors = [ActorSnapshot(agent.policy, 2) for agent in agents]
    assert len(converted) == 1
    taken = []
    for agent, actor in zip(agents, actors, strict=True):
        assert actor.backend == "litert"
        action, expected = act(agent, actor)
        np.testing.assert_allclose(action, expected, rtol=1e-5)
        taken.append(action)
    assert (taken[0] != taken[1]).all()
    other = rl.A2C.for_env("Pendulum-v1", hidden=(4,), activation="tanh")
    ActorSnapshot(other.policy, 2)
    assert len(converted) == 1


def test_other_networks_batches_and_modes_have_their_own(converted):
    ActorSnapshot(ppo().policy, 2)
    for count, other in enumerate(
        (
            {"hidden": (5,)},
            {"activation": "relu"},
        ),
        start=2,
    ):
        agent = ppo(**other)
        action, expected = act(agent, ActorSnapshot(agent.policy, 2))
        assert len(converted) == count, other
        np.testing.assert_allclose(action, expected, rtol=1e-5)
    for num_envs, deterministic in ((2, False), (3, False), (2, True)):
        ActorSnapshot(ppo().policy, num_envs, deterministic)
    assert len(converted) == 5


@keras.saving.register_keras_serializable(package="test_conversions")
class Hidden(keras.layers.Layer):
    """Adds a variable that Keras does not know of."""

    def __init__(self, value, **kwargs):
        super().__init__(**kwargs)
        with tf.init_scope():
            self.value = [tf.Variable(value)]

    def call(self, inputs):
        return inputs + tf.reduce_sum(self.value[0]) + inputs[:, :1]


def test_values_that_are_no_inputs_are_not_shared(converted):
    for value in (0.0, 100.0):
        actor = keras.Sequential(
            [keras.Input((3,)), keras.layers.Dense(1), Hidden([value] * 200)]
        )
        critic = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        agent = rl.PPO(actor, critic)
        agent.bind(*spaces())
        action, expected = act(agent, ActorSnapshot(agent.policy, 2))
        np.testing.assert_allclose(action, expected, rtol=1e-5)
    assert len(converted) == 2


def spaces():
    env = rl.envs.as_vector_env("Pendulum-v1")
    return env.observation_space, env.action_space


def test_a_conversion_that_acts_differently_is_not_kept(converted, monkeypatch):
    monkeypatch.setattr(conversions.np, "allclose", lambda *_, **__: False)
    for _ in range(2):
        assert ActorSnapshot(ppo().policy, 2).backend == "tensorflow"
    assert len(converted) == 2


def test_the_number_of_kept_conversions_is_limited(monkeypatch):
    monkeypatch.setattr(conversions, "_MOST_KEPT", 2)
    for num_envs in (2, 3, 4):
        ActorSnapshot(ppo().policy, num_envs)
    assert len(conversions._conversions) == 2
