"""The snapshot acts as the agent does, and only as of its last `sync`."""

import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.data import ActorSnapshot
from keras_rl2.policies import actors
from support.agents import AGENTS
from support.agents import make_agent
from support.agents import make_env
from support.agents import make_rollouts
from support.agents import slow

PPO = AGENTS["PPO"]


def with_loud_policy(agent):
    """Makes weights large, so that actions depend on them."""
    generator = np.random.default_rng(0)
    for variable in agent.actor.trainable_variables:
        variable.assign(generator.standard_normal(variable.shape))
    return agent


def inputs(agent, num_envs, seed=1):
    space = agent.observation_space
    space.seed(seed)
    batch = np.stack([space.sample() for _ in range(num_envs)])
    noise, _ = agent.policy.noise.draw(np.random.default_rng(seed), (num_envs,))
    return np.ascontiguousarray(
        batch, agent.policy.observation_spec.dtype
    ), noise


def assert_acts_alike(
    actor, agent, num_envs, deterministic=False, tolerance=1e-4
):
    for seed in range(5):
        observation, noise = inputs(agent, num_envs, seed)
        noise = None if deterministic else noise
        action, for_environment = actor(observation, noise)
        if deterministic:
            expected = agent.greedy_action(observation)
        else:
            expected = agent.sample_action(observation, noise)
        head = agent.policy.head
        assert action.dtype == head.action_dtype
        assert action.shape == (num_envs, *head.action_shape)
        for ours, theirs in (
            (action, expected),
            (for_environment, head.to_environment(expected)),
        ):
            np.testing.assert_allclose(
                ours, theirs.numpy(), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize(
    ("pair", "num_envs"),
    [
        ("act_discrete_start", 3),
        ("act_multi_discrete", 3),
        ("act_box_matrix", 3),
        ("observe_discrete", 3),
        ("observe_image", 3),
        ("act_box", 1),
        *slow(
            ("act_discrete", 3),
            ("act_multi_binary", 3),
            ("act_box_unbounded", 3),
            ("observe_float64", 3),
            ("observe_matrix", 3),
        ),
    ],
)
def test_actors_act_as_tensorflow(pair, num_envs, caplog):
    agent = make_agent(PPO, make_env(pair))
    with caplog.at_level(logging.WARNING):
        actor = ActorSnapshot(agent.policy, num_envs)
    # Convolutions of weights that are inputs are slow in LiteRT.
    convolves = pair == "observe_image"
    assert actor.backend == ("tensorflow" if convolves else "litert")
    assert not caplog.records
    with_loud_policy(agent)
    actor.sync()
    assert_acts_alike(actor, agent, num_envs)


@pytest.mark.parametrize("pair", ["act_discrete_start", "act_box_matrix"])
def test_deterministic_snapshot_takes_the_mode(pair):
    agent = with_loud_policy(make_agent(PPO, make_env(pair)))
    actor = ActorSnapshot(agent.policy, 4, deterministic=True)
    assert actor.backend == "litert"
    assert_acts_alike(actor, agent, 4, deterministic=True)


def test_layers_convert():
    inputs = keras.Input((3,))
    hidden = keras.layers.Dense(3, "gelu")(inputs)
    hidden = keras.layers.BatchNormalization()(hidden)
    hidden = keras.layers.Dropout(0.5)(hidden)
    hidden = keras.layers.Add()([inputs, hidden])
    hidden = keras.layers.LayerNormalization()(hidden)
    outputs = keras.layers.Dense(3)(hidden)
    env = make_env()
    critic = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    agent = PPO.make(keras.Model(inputs, outputs), critic)
    agent.bind(env.observation_space, env.action_space)
    actor = ActorSnapshot(agent.policy, 3)
    assert actor.backend == "litert"
    with_loud_policy(agent)
    actor.sync()
    assert_acts_alike(actor, agent, 3)


def test_normalisation_layer_converts_and_follows():
    env = make_env("observe_float64")
    agent = make_agent(PPO, env, normalize_observations=True)
    layer = agent.actor.get_layer("normalization")
    actor = ActorSnapshot(agent.policy, 3)
    assert actor.backend == "litert"
    with_loud_policy(agent)
    layer.mean.assign([100.0, -100.0, 7.0])
    actor.sync()
    assert_acts_alike(actor, agent, 3)


def test_weights_change_only_at_sync():
    agent = make_agent(PPO, make_env("act_box"))
    actor = ActorSnapshot(agent.policy, 3)
    observation, noise = inputs(agent, 3)
    before = actor(observation, noise)[0]
    with_loud_policy(agent)
    agent.log_std.assign([1.0])
    np.testing.assert_array_equal(actor(observation, noise)[0], before)
    actor.sync()
    assert (actor(observation, noise)[0] != before).all()
    assert_acts_alike(actor, agent, 3)


def test_non_finite_actions_reach_no_environment():
    env = make_env("act_box_unbounded", num_envs=3)
    agent = rl.PPO.for_env(env, hidden=(4,), activation="relu", seed=0)
    for variable in agent.actor.trainable_variables:
        variable.assign(10.0 * np.ones(variable.shape))
    actor = ActorSnapshot(agent.policy, 3)
    observation, noise = inputs(agent, 3)
    actor(observation, noise)
    observation[1] = 3e38
    with pytest.raises(
        ValueError, match=r"finite actions.*environment 1.*was 3e\+38"
    ):
        actor(observation, noise)
    agent.actor.trainable_variables[-1].assign([np.nan] * noise.shape[-1])
    with pytest.raises(ValueError, match=r"finite weights to act with.*bias"):
        actor.sync()


def test_actions_do_not_change_after_the_next_call():
    """Datasets store them. Memory of the interpreter would be overwritten."""
    agent = with_loud_policy(make_agent(PPO, make_env("act_box")))
    actor = ActorSnapshot(agent.policy, 3)
    first, for_environment = actor(*inputs(agent, 3, seed=1))
    copies = first.copy(), for_environment.copy()
    actor(*inputs(agent, 3, seed=2))
    np.testing.assert_array_equal(first, copies[0])
    np.testing.assert_array_equal(for_environment, copies[1])


# Falling back.


@keras.saving.register_keras_serializable(package="test_actors")
class Inconvertible(keras.layers.Layer):
    """Something that TensorFlow can do and LiteRT cannot."""

    def call(self, inputs):
        # The determinant has no kernel in LiteRT.
        square = inputs[:, :, None] * inputs[:, None, :]
        shifted = square + keras.ops.eye(3)
        return inputs * keras.ops.linalg.det(shifted)[:, None]


def inconvertible_agent():
    env = make_env()
    networks = [
        keras.Sequential(
            [keras.Input((3,)), Inconvertible(), keras.layers.Dense(units)]
        )
        for units in (3, 1)
    ]
    agent = PPO.make(*networks)
    agent.compile(keras.optimizers.SGD(0.01), run_eagerly=True)
    agent.bind(env.observation_space, env.action_space)
    return agent, env


def test_a_policy_that_does_not_convert_runs_in_tensorflow(caplog):
    agent, env = inconvertible_agent()
    with caplog.at_level(logging.WARNING):
        actor = ActorSnapshot(agent.policy, 2)
    assert actor.backend == "tensorflow"
    (record,) = caplog.records
    assert "does not convert to LiteRT" in record.message
    assert "\n" not in record.message
    assert_acts_alike(actor, agent, 2)
    before = actor(*inputs(agent, 2))[0]
    agent.fit(make_rollouts(env), verbose=0)
    assert agent.env_steps == 16
    np.testing.assert_array_equal(actor(*inputs(agent, 2))[0], before)
    actor.sync()
    assert_acts_alike(actor, agent, 2)


def dense(units, policy):
    """Builds a network that computes in the dtype of a Keras policy."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        return keras.Sequential(
            [
                keras.Input((3,)),
                keras.layers.Dense(8, "tanh"),
                keras.layers.Dense(units),
            ]
        )
    finally:
        keras.config.set_dtype_policy(before)


@pytest.mark.parametrize(
    ("policy", "pair", "tolerance"),
    [
        ("mixed_float16", "act_discrete", 0.0),
        # Eight bits: steps of 1/256, by the order in which it is added up.
        ("mixed_bfloat16", "act_box", 1.6e-2),
        ("float64", "act_discrete", 0.0),
    ],
)
def test_policies_of_other_float_types_are_not_converted(
    policy, pair, tolerance, caplog, capfd
):
    """LiteRT has no kernels; its converter writes pages of errors of it."""
    dtype = policy.removeprefix("mixed_")
    # TensorFlow says once if it has none for this processor either.
    tf.matmul(tf.ones((2, 2), dtype), tf.ones((2, 2), dtype))
    env = make_env(pair)
    units = 3 if pair == "act_discrete" else 1
    agent = PPO.make(dense(units, policy), dense(1, policy))
    agent.bind(env.observation_space, env.action_space)
    capfd.readouterr()
    with caplog.at_level(logging.WARNING):
        actor = ActorSnapshot(agent.policy, 2)
    written = capfd.readouterr()
    assert written.err == written.out == ""
    assert actor.backend == "tensorflow"
    (record,) = caplog.records
    assert record.message.endswith(f"it computes in {dtype}")
    with_loud_policy(agent)
    actor.sync()
    assert_acts_alike(actor, agent, 2, tolerance=tolerance)


def test_a_conversion_that_acts_differently_is_not_used(monkeypatch, caplog):
    make = actors.LiteRTRunner

    def wrong(*arguments):
        """Loses the weights of the first layer."""
        runner = make(*arguments)
        set_weights = runner.set_weights

        def set_wrong(weights):
            set_weights([0.0 * weights[0], *weights[1:]])

        runner.set_weights = set_wrong
        return runner

    monkeypatch.setattr(actors, "LiteRTRunner", wrong)
    # What was found to act alike is not compared again.
    monkeypatch.setattr(actors, "_conversions", {})
    agent = make_agent(PPO, make_env("act_box"))
    with caplog.at_level(logging.WARNING):
        actor = ActorSnapshot(agent.policy, 4)
    assert actor.backend == "tensorflow"
    (record,) = caplog.records
    assert "returned other actions" in record.message
    assert_acts_alike(actor, agent, 4)
