"""IQL: an update against NumPy, from the paper; and refused arguments."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from support import deterministic as support
from support.agents import assert_equal_weights
from support.agents import make_env
from support.agents import make_replay
from support.deterministic import UNIT
from support.deterministic import linear_actor
from support.deterministic import linear_critic
from support.deterministic import linear_network
from support.errors import raises
from support.gradients import numerical_gradient

TAU, BETA, MOST = 0.8, 1.5, 2.0
OBSERVATION, FOLLOWING, REWARD, DISCOUNT, WEIGHT = support.BATCH.values()
ACTIONS = np.array([[0.5], [-1.0], [0.25]])
CHOICES = np.array([0, 1, 0])
BATCH = {k: tf.constant(v, "float32") for k, v in support.BATCH.items()}


def make_agent(discrete, **settings):
    """An agent of linear networks, with targets elsewhere, and SGD of 1."""
    if discrete:
        actor = linear_network([0.3, -0.2], [0.1, -0.5], "actor")
        critics = [
            linear_network([1.0, -1.0], [0.5, 0.25], "critic_0"),
            linear_network([-0.5, 0.75], [0.0, 0.5], "critic_1"),
        ]
    else:
        actor = linear_actor(0.5, 0.25)
        critics = [
            linear_critic(1.0, 2.0, 0.5, name="critic_0"),
            linear_critic(-0.5, 1.5, 0.25, name="critic_1"),
        ]
    agent = rl.IQL(
        actor,
        critics,
        linear_network([0.75], [-0.5 if discrete else -2.0], "value_network"),
        expectile=TAU,
        inverse_temperature=BETA,
        max_weight=MOST,
        observation_space=UNIT,
        action_space=spaces.Discrete(2) if discrete else UNIT,
        seed=0,
        **settings,
    )
    agent.compile(keras.optimizers.SGD(1.0), run_eagerly=True)
    # The first update of all would begin with a copy.
    agent.updates.assign(1)
    for target, shift in zip(agent.target_critics, (0.25, -0.5), strict=True):
        target.set_weights([w + shift for w in target.get_weights()])
    return agent


def taken(weights, discrete):
    kernel, bias = weights
    if discrete:
        values = OBSERVATION @ kernel + bias
        return np.take_along_axis(values, CHOICES[:, None], 1)[:, 0]
    both = np.concatenate([OBSERVATION, ACTIONS], axis=1)
    return (both @ kernel + bias)[:, 0]


def state_value(weights, observation):
    kernel, bias = weights
    return (observation @ kernel + bias)[:, 0]


def log_prob(weights, log_std, discrete):
    kernel, bias = weights
    output = OBSERVATION @ kernel + bias
    if discrete:
        logits = output - np.log(np.exp(output).sum(axis=1, keepdims=True))
        return np.take_along_axis(logits, CHOICES[:, None], 1)[:, 0]
    z = (ACTIONS - np.tanh(output)) / np.exp(log_std)
    density = -0.5 * z**2 - log_std - 0.5 * np.log(2 * np.pi)
    return density[:, 0]


def reckoned(agent, discrete):
    """Losses in NumPy, each a function of the network that minimises it."""
    critics = [c.get_weights() for c in agent.critics]
    targets = [c.get_weights() for c in agent.target_critics]
    value = agent.value_network.get_weights()
    smallest = np.minimum(*(taken(t, discrete) for t in targets))
    advantage = smallest - state_value(value, OBSERVATION)
    target = REWARD + DISCOUNT * state_value(value, FOLLOWING)

    def critic_loss(weights):
        return np.mean(0.5 * WEIGHT * (target - taken(weights, discrete)) ** 2)

    def value_loss(weights):
        error = smallest - state_value(weights, OBSERVATION)
        share = np.where(error < 0, 1 - TAU, TAU)
        return np.mean(WEIGHT * share * error**2)

    each = np.minimum(np.exp(BETA * advantage), MOST)

    def actor_loss(weights):
        kernel, bias, *log_std = weights
        found = log_prob([kernel, bias], *(log_std or [0.0]), discrete)
        return -np.mean(WEIGHT * each * found)

    return critics, value, critic_loss, value_loss, actor_loss, each


def step(loss, weights):
    """One step of gradient descent."""
    weights = [np.array(w, "float64") for w in weights]
    gradients = numerical_gradient(lambda: loss(weights), weights)
    return [w - g for w, g in zip(weights, gradients, strict=True)]


@pytest.mark.parametrize("discrete", [False, True], ids=["box", "discrete"])
def test_an_update_is_that_of_the_paper(discrete):
    agent = make_agent(discrete)
    critics, value, critic_loss, value_loss, actor_loss, each = reckoned(
        agent, discrete
    )
    own = [] if discrete else [agent.log_std.numpy()]
    actor = [*agent.actor.get_weights(), *own]
    expected = {
        "critics": [step(critic_loss, weights) for weights in critics],
        "value": step(value_loss, value),
        "actor": step(actor_loss, actor),
        "critic_loss": sum(critic_loss(weights) for weights in critics),
        "value_loss": value_loss(value),
        "actor_loss": actor_loss(actor),
    }
    # One is clipped, one is not.
    assert (each == MOST).any()
    assert (each < 1).any()
    action = (
        tf.constant(CHOICES, "int32")
        if discrete
        else tf.constant(ACTIONS, "float32")
    )
    logs = agent.train_step({**BATCH, "action": action})
    for name in ("critic_loss", "value_loss", "actor_loss"):
        assert float(logs[name]) == pytest.approx(expected[name], rel=1e-5)
    assert float(logs["advantage_weight"]) == pytest.approx(
        np.mean(each), rel=1e-5
    )
    actual = [c.get_weights() for c in agent.critics]
    for ours, theirs in zip(actual, expected["critics"], strict=True):
        assert_near(ours, theirs)
    assert_near(agent.value_network.get_weights(), expected["value"])
    own = [] if discrete else [agent.log_std.numpy()]
    assert_near([*agent.actor.get_weights(), *own], expected["actor"])


def assert_near(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def batch_of(discrete):
    action = tf.constant(CHOICES if discrete else ACTIONS)
    dtype = "int32" if discrete else "float32"
    return {**BATCH, "action": tf.cast(action, dtype)}


def test_advantages_teach_the_policy_nothing_about_values():
    discrete = False
    agent = make_agent(discrete)
    with tf.GradientTape() as tape:
        loss = agent.actor_terms(batch_of(discrete))["loss"]
    others = [*agent.critics, *agent.target_critics, agent.value_network]
    variables = [v.value for each in others for v in each.variables]
    assert tape.gradient(loss, variables) == [None] * len(variables)
    with tf.GradientTape() as tape:
        loss = agent.objectives()["critic"].terms(batch_of(discrete))["loss"]
    variables = [v.value for v in agent.value_network.variables]
    assert tape.gradient(loss, variables) == [None] * len(variables)


def test_its_policy_stays_in_the_box():
    agent = make_agent(False, initial_log_std=1.0)
    observation = np.zeros((64, 1))
    drawn = np.array(
        agent.sample_action(observation, tf.random.normal((64, 1)))
    )
    assert drawn.min() == -1.0
    assert drawn.max() == 1.0
    greedy = agent.act(observation, deterministic=True)
    np.testing.assert_allclose(greedy, np.tanh(0.25), rtol=1e-6)


def test_a_second_optimizer_owns_critics_and_values():
    agent = rl.IQL.for_env(make_env("act_box"), hidden=(8,), seed=0)
    agent.compile(
        keras.optimizers.SGD(0.0),
        critic_optimizer=keras.optimizers.SGD(0.1),
        run_eagerly=True,
    )
    before = {n.name: n.get_weights() for n in (agent.actor, *agent.critics)}
    value = agent.value_network.get_weights()
    replay = make_replay(make_env("act_box"), updates_per_round=1)
    agent.fit(replay, verbose=0)
    assert_equal_weights(agent.actor.get_weights(), before["actor"])
    for network, old in (
        (agent.critics[1], before["critic_1"]),
        (agent.value_network, value),
    ):
        assert (network.get_weights()[0] != old[0]).any()


def test_invalid_arguments_and_networks_are_refused():
    for name, value in (
        ("expectile", 1.5),
        ("inverse_temperature", -1.0),
        ("max_weight", 0.0),
    ):
        with raises(name, str(value)):
            rl.IQL.for_env(make_env("act_box"), **{name: value})
    agent = make_agent(True)
    spaces_of = {
        "observation_space": UNIT,
        "action_space": spaces.Discrete(2),
    }
    with raises("the value_network's output", "2 units"):
        rl.IQL(
            agent.actor,
            agent.critics,
            linear_network([1, 1], [0, 0], "v"),
            **spaces_of,
        )
    with raises("without common variables", "both own"):
        critic = linear_network([1.0], [0.0], "both")
        both = keras.layers.Concatenate()([critic.output, critic.output])
        rl.IQL(
            agent.actor, keras.Model(critic.input, both), critic, **spaces_of
        )
    with raises("an action space that IQL can act in", "MultiBinary"):
        rl.IQL.for_env(make_env("act_multi_binary"))
