"""CQL: which class it makes, its penalty by hand, and α that is learned."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from keras_rl2.agents import BoxCQL
from keras_rl2.agents import DiscreteCQL
from support.agents import AnySpaceEnv
from support.agents import make_env
from support.deterministic import UNIT
from support.deterministic import linear_critic
from support.errors import raises

VECTOR = spaces.Box(-1.0, 1.0, (3,), np.float32)
PAIRS = {"discrete": "act_discrete", "box": "act_box_matrix"}
PLAIN = {"discrete": rl.DQN, "box": rl.SAC}


def minibatch(kind, count=6, seed=0):
    rng = np.random.default_rng(seed)
    observation, following = rng.normal(size=(2, count, 3))
    action = (
        tf.constant(rng.integers(0, 3, count), "int32")
        if kind == "discrete"
        else tf.constant(rng.uniform(-1, 1, (count, 4)), "float32")
    )
    return {
        "observation": tf.constant(observation, "float32"),
        "next_observation": tf.constant(following, "float32"),
        "action": action,
        "reward": tf.constant(rng.normal(size=count), "float32"),
        "discount": tf.constant([0.9, 0.0, 0.9, 0.5, 0.9, 0.9], "float32"),
        "weight": tf.constant([1.0, 0.5, 2.0, 1.0, 0.25, 1.0], "float32"),
    }


def trained(make, kind, updates=3, **settings):
    agent = make.for_env(make_env(PAIRS[kind]), hidden=(8,), seed=0, **settings)
    agent.compile(keras.optimizers.SGD(0.1), run_eagerly=True)
    logs = {}
    for seed in range(updates):
        agent.statistics.reset_state()
        logs = agent.train_step(minibatch(kind, seed=seed))
    return agent, {key: float(value) for key, value in logs.items()}


# One name for both.


@pytest.mark.parametrize(
    ("kind", "make"), [("discrete", DiscreteCQL), ("box", BoxCQL)]
)
def test_for_env_makes_the_class_of_the_action_space(kind, make):
    agent = rl.CQL.for_env(make_env(PAIRS[kind]), hidden=(4,), seed=0)
    assert type(agent) is make
    assert isinstance(agent, rl.CQL)
    assert isinstance(agent, PLAIN[kind])


def test_invalid_spaces_and_arguments_are_refused():
    with raises("an action space that CQL can act in", "MultiBinary"):
        rl.CQL.for_env(make_env("act_multi_binary"))
    # Arguments of the other kind, and of none.
    with pytest.raises(TypeError, match="num_samples"):
        rl.CQL.for_env(make_env(), num_samples=3)
    with pytest.raises(TypeError, match="nothing"):
        rl.CQL.for_env(make_env(), nothing=True)
    env = make_env("act_box")
    with pytest.raises(TypeError, match="double"):
        rl.CQL.for_env(env, double=True)
    with raises("alpha", "-1"):
        rl.CQL.for_env(env, alpha=-1.0)
    for number in (0, 2.5):
        with raises("`num_samples`", str(number)):
            rl.CQL.for_env(env, num_samples=number)


# The update.


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("box", {}),
        ("discrete", {"loss": "huber", "double": True, "dueling": True}),
    ],
)
def test_alpha_of_zero_trains_the_plain_algorithm(kind, settings):
    plain, expected = trained(PLAIN[kind], kind, 1, **settings)
    agent, logs = trained(rl.CQL, kind, 1, alpha=0.0, **settings)
    for one, other in zip(
        agent.get_weights(), plain.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)
    for key, value in expected.items():
        assert logs[key] == pytest.approx(value, abs=1e-6), key


def test_the_penalty_of_choices_by_hand():
    batch = minibatch("discrete")
    agent = rl.CQL.for_env(make_env(), hidden=(8,), seed=0)
    values = np.array(agent(batch["observation"]), "float64")
    taken = values[np.arange(6), batch["action"]]
    each = np.log(np.exp(values).sum(axis=1)) - taken
    assert agent.loss_name == "huber"
    _, plain = trained(rl.DQN, "discrete", updates=1, loss="huber")
    _, logs = trained(rl.CQL, "discrete", updates=1, alpha=0.5)
    assert logs["cql_penalty"] == pytest.approx(each.mean(), rel=1e-5)
    assert logs["alpha"] == 0.5
    expected = plain["loss"] + 0.5 * np.mean(batch["weight"] * each)
    assert logs["loss"] == pytest.approx(expected, rel=1e-5)


def test_the_penalty_is_over_allowed_actions():
    observation = spaces.Dict(
        {"place": VECTOR, "action_mask": spaces.MultiBinary(3)}
    )
    env = AnySpaceEnv(observation, spaces.Discrete(3))
    agent = rl.CQL.for_env(env, hidden=(8,), seed=0)
    agent.compile(run_eagerly=True)
    batch = minibatch("discrete")
    seen = {
        "place": batch["observation"],
        "action_mask": tf.constant([[0, 1, 1]] * 6),
    }
    values = np.array(agent(seen), "float64")
    action = np.array([1, 2, 2, 1, 1, 2])
    each = np.log(np.exp(values[:, 1:]).sum(axis=1))
    each -= values[np.arange(6), action]
    logs = agent.train_step(
        {
            **batch,
            "observation": seen,
            "next_observation": seen,
            "action": tf.constant(action, "int32"),
        }
    )
    assert float(logs["cql_penalty"]) == pytest.approx(each.mean(), rel=1e-5)


def test_cql_samples_uniform_and_policy_actions_with_their_log_probs():
    agent = rl.CQL.for_env(
        make_env("act_box_matrix"), hidden=(8,), seed=0, num_samples=500
    )
    batch = minibatch("box")
    action, log_prob = map(np.array, agent.sampled_actions(batch))
    assert action.shape == (6, 1500, 4)
    assert log_prob.shape == (6, 1500)
    uniform, own, following = np.split(action, 3, axis=1)
    np.testing.assert_allclose(uniform.mean(axis=(0, 1)), 0.0, atol=0.05)
    np.testing.assert_allclose(uniform.std(axis=(0, 1)), 3**-0.5, atol=0.05)
    np.testing.assert_allclose(log_prob[:, :500], -4 * np.log(2.0), rtol=1e-6)
    for drawn, found, observation in (
        (own, log_prob[:, 500:1000], batch["observation"]),
        (following, log_prob[:, 1000:], batch["next_observation"]),
    ):
        policy = agent.distribution(tf.repeat(observation, 500, axis=0))
        expected = policy.log_prob(drawn.reshape(-1, 4))
        np.testing.assert_allclose(
            found.ravel(), expected, rtol=1e-3, atol=1e-3
        )
    again, _ = agent.sampled_actions(batch)
    np.testing.assert_array_equal(again, action)
    agent.updates.assign(1)
    others, _ = agent.sampled_actions(batch)
    assert (np.array(others) != action).any()


def test_the_penalty_of_numbers_by_hand():
    """The integral is known of critics that are linear in the action."""
    actor = keras.Sequential([keras.Input((1,)), keras.layers.Dense(2)])
    actor.build((None, 1))
    actor.set_weights([np.zeros((1, 2)), np.array([0.25, -0.5])])
    slopes = (2.0, -1.0)
    agent = BoxCQL(
        actor,
        [
            linear_critic(1.0, slope, 0.5, name=f"critic_{i}")
            for i, slope in enumerate(slopes)
        ],
        observation_space=UNIT,
        action_space=UNIT,
        num_samples=2000,
        seed=0,
    )
    agent.compile(run_eagerly=True)
    observation = tf.constant([[0.5], [-1.0]])
    action = np.array([0.25, -0.5])
    logs = agent.train_step(
        {
            "observation": observation,
            "next_observation": observation,
            "action": tf.constant(action[:, None], "float32"),
            "reward": tf.zeros(2),
            "discount": tf.zeros(2),
        }
    )
    # log ∫ exp(k a) da - k a_data, which the sum is times its 6000 actions.
    expected = [
        np.log(2 * np.sinh(slope) / slope) + np.log(6000) - slope * action
        for slope in slopes
    ]
    penalty = float(logs["cql_penalty"])
    assert penalty == pytest.approx(np.mean(expected), abs=0.03)


def test_the_penalty_teaches_critics_only():
    agent = rl.CQL.for_env(make_env("act_box_matrix"), hidden=(8,), seed=0)
    batch = minibatch("box")
    with tf.GradientTape() as tape:
        loss = agent.objectives()["critic"].terms(batch)["loss"]
    variables = [v.value for v in agent.actor.variables]
    assert tape.gradient(loss, variables) == [None] * len(variables)
