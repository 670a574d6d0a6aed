"""What cannot work is refused early, saying what was expected and received."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from support.agents import AGENTS
from support.agents import AnySpaceEnv
from support.agents import assert_equal_weights
from support.agents import make_agent
from support.agents import make_env
from support.agents import make_rollouts
from support.agents import weights_of
from support.errors import raises

pytestmark = pytest.mark.parametrize("name", AGENTS)

BOX = spaces.Box(-1.0, 1.0, (3,), np.float32)
BAD_OBSERVATIONS = {
    "Dict": spaces.Dict({"a": BOX}),
    "Tuple": spaces.Tuple([BOX]),
    "Text": spaces.Text(4),
    "MultiBinary": spaces.MultiBinary(3),
}
BAD_ACTIONS = {
    "Dict": spaces.Dict({"a": BOX}),
    "Tuple": spaces.Tuple([BOX]),
    "Text": spaces.Text(4),
    "Box(0, 3": spaces.Box(0, 3, (2,), np.int32),
}


def network(inputs, units):
    return keras.Sequential([keras.Input(inputs), keras.layers.Dense(units)])


# Spaces.


@pytest.mark.parametrize("space", BAD_OBSERVATIONS)
def test_observation_space(name, space):
    env = AnySpaceEnv(BAD_OBSERVATIONS[space], spaces.Discrete(2))
    with raises("observation space of type Box", space):
        AGENTS[name].make.for_env(env)
    with raises("observation space of type Box", space):
        rl.RolloutDataset(env)


@pytest.mark.parametrize("space", BAD_ACTIONS)
def test_action_space(name, space):
    env = AnySpaceEnv(BOX, BAD_ACTIONS[space])
    with raises("action space of type Box", space.replace("(", r"\(")):
        AGENTS[name].make.for_env(env)
    with raises("action space of type Box", space.replace("(", r"\(")):
        rl.RolloutDataset(env)


def test_spaces_of_the_constructor(name):
    networks = network((3,), 2), network((3,), 1)
    with raises("observation space of type Box", "Dict"):
        AGENTS[name].make(
            *networks,
            observation_space=BAD_OBSERVATIONS["Dict"],
            action_space=spaces.Discrete(2),
        )


@pytest.mark.parametrize(
    ("pair", "what"),
    [
        ("act_box", "action"),
        ("act_discrete_start", "action"),
        ("observe_matrix", "observation"),
        ("observe_discrete", "observation"),
    ],
)
def test_environment_other_than_bound(name, pair, what):
    agent = make_agent(AGENTS[name], make_env("act_discrete"))
    before = weights_of(agent)
    with raises(f"with the {what} space that", "."):
        agent.fit(make_rollouts(make_env(pair)))
    with raises(f"with the {what} space that", "."):
        agent.evaluate(make_env(pair))
    assert_equal_weights(agent, before)


# Networks.


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("act_discrete", "3 units"),
        ("act_multi_discrete", "5 units"),
        ("act_multi_binary", "3 units"),
        ("act_box_matrix", "4 or 8 units"),
    ],
)
def test_actor_output(name, pair, expected):
    env = make_env(pair)
    bad = network((3,), 7), network((3,), 1)
    with raises(expected, "7 units"):
        AGENTS[name].make(
            *bad,
            observation_space=env.observation_space,
            action_space=env.action_space,
        )
    # Without spaces, as soon as an environment is known.
    agent = AGENTS[name].make(*bad)
    agent.compile(jit_compile=False)
    with raises(expected, "7 units"):
        agent.fit(make_rollouts(env))


def test_critic_output(name):
    env = make_env()
    agent = AGENTS[name].make(network((3,), 3), network((3,), 2))
    with raises("critic's output to have 1 unit", "2 units"):
        agent.bind(env.observation_space, env.action_space)
    alone = AGENTS[name].make(network((3,), 3))
    if alone.needs_value:
        with raises("a critic, or one network with two outputs", "critic=None"):
            alone.bind(env.observation_space, env.action_space)
    else:
        alone.bind(env.observation_space, env.action_space)
        np.testing.assert_array_equal(alone.value(np.ones((2, 3))), [0.0, 0.0])


def test_network_input(name):
    env = make_env()
    agent = AGENTS[name].make(network((4,), 3), network((4,), 1))
    with raises(r"actor to take observations of shape \(None, 3\)", "Error"):
        agent.bind(env.observation_space, env.action_space)


@pytest.mark.parametrize("what", ["actor", "critic"])
def test_network_type(name, what):
    networks = {"actor": network((3,), 3), "critic": network((3,), 1)}
    networks[what] = keras.layers.Dense(3)
    with raises(f"`{what}` to be a `keras.Model`", "Dense"):
        AGENTS[name].make(**networks)


def test_an_agent_that_failed_to_bind_can_be_bound_again(name):
    agent = AGENTS[name].make(network((3,), 3), network((3,), 1))
    other = make_env("observe_matrix")
    with pytest.raises(ValueError, match="actor to take"):
        agent.bind(other.observation_space, other.action_space)
    with raises("knows its spaces", "bound to no environment"):
        agent.act(np.zeros(3))
    env = make_env()
    agent.bind(env.observation_space, env.action_space)
    assert env.action_space.contains(agent.act(np.zeros(3)))


# Numbers.


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gamma", 1.1),
        ("gamma", -0.1),
        ("gamma", "0.9"),
        ("gamma", float("nan")),
        ("gae_lambda", 2.0),
        ("entropy_coefficient", -1.0),
        ("value_coefficient", -1.0),
        ("max_gradient_norm", -1.0),
        ("max_gradient_norm", 0.0),
        ("initial_log_std", float("nan")),
    ],
)
def test_hyper_parameters(name, key, value):
    if key in AGENTS[name].lacks:
        with pytest.raises(TypeError, match=key):
            AGENTS[name].make.for_env(make_env(), **{key: value})
        return
    with raises(f"`{key}` to be a number", key):
        AGENTS[name].make.for_env(make_env(), **{key: value})


@pytest.mark.parametrize(
    "key", ["horizon", "passes", "batch_size", "rounds_per_epoch", "num_envs"]
)
@pytest.mark.parametrize("value", [0, -1, 1.5, "8"])
def test_sizes_of_rollouts(name, key, value):
    with raises(f"`{key}` to be an integer of at least 1", f"{key}="):
        rl.RolloutDataset("CartPole-v1", **{key: value})


def test_batch_larger_than_the_rollout(name):
    with raises("at most the rollout.* = 8 x 2 = 16", "batch_size=17"):
        make_rollouts(make_env(), batch_size=17)


# `compile` and `fit`.


@pytest.mark.parametrize(
    ("arguments", "received"),
    [
        ({"loss": "mse"}, "`loss`"),
        ({"metrics": ["mse"]}, "`metrics`"),
        ({"actor_optimizer": "adam"}, "actor_optimizer"),
        ({"steps_per_execution": 0}, "0"),
        ({"steps_per_execution": "all"}, "'all'"),
    ],
)
def test_compile_arguments(name, arguments, received):
    agent = make_agent(AGENTS[name], make_env())
    optimizer = agent.optimizer
    with raises("Expected", received):
        agent.compile("adam", **arguments)
    # It is compiled as before.
    assert agent.optimizer is optimizer
    assert agent.get_compile_config()["steps_per_execution"] == "auto"


def test_steps_per_execution_that_do_not_divide_the_round(name):
    env = make_env()
    agent = make_agent(
        AGENTS[name], env, compile_arguments={"steps_per_execution": 3}
    )
    with raises("divide the updates of a round, 2", "steps_per_execution=3"):
        agent.fit(make_rollouts(env))
    assert agent.env_steps == 0


def test_epochs_and_total_steps(name):
    env = make_env()
    agent = make_agent(AGENTS[name], env)
    with raises("either `epochs` or `total_steps`", "epochs=1, total_steps=9"):
        agent.fit(make_rollouts(env), epochs=1, total_steps=9)
    with raises("`total_steps` to be at least 1", "total_steps=0"):
        agent.fit(make_rollouts(env), total_steps=0)
    assert agent.env_steps == 0


def test_total_steps_are_those_of_this_call(name):
    env = make_env()
    agent = make_agent(AGENTS[name], env)
    rollouts = make_rollouts(env)
    one_round = AGENTS[name].env_steps(1)
    agent.fit(rollouts, total_steps=one_round + 1, verbose=0)
    assert agent.env_steps == 2 * one_round
    agent.fit(rollouts, total_steps=one_round, verbose=0)
    assert agent.env_steps == 3 * one_round
    history = agent.fit(
        rollouts, total_steps=2 * one_round, initial_epoch=7, verbose=0
    )
    assert history.epoch == [7, 8]


@pytest.mark.parametrize(
    "make", [make_env, lambda: make_env().env, lambda: "CartPole-v1"]
)
def test_an_environment_in_place_of_rollouts(name, make):
    agent = make_agent(AGENTS[name], make_env())
    with raises("a `keras_rl2.RolloutDataset`", "x="):
        agent.fit(make())
    with raises("a `keras_rl2.RolloutDataset`", "x="):
        agent.fit(np.zeros((4, 3)), y=np.zeros(4))


def test_total_steps_of_a_plain_dataset(name):
    agent = make_agent(AGENTS[name], make_env())
    with raises("with `epochs`", "total_steps=9"):
        agent.fit(tf.data.Dataset.range(3), total_steps=9)


def test_two_refreshes(name):
    env = make_env()
    agent = make_agent(AGENTS[name], env)
    rollouts = make_rollouts(env)
    refreshes = [
        rl.callbacks.RolloutRefresh(r)
        for r in (rollouts, make_rollouts(make_env()))
    ]
    for given in (refreshes, refreshes[1:]):
        with raises("at most one `RolloutRefresh`", str(len(given))):
            agent.fit(rollouts, callbacks=given, verbose=0)


def test_rollouts_without_an_agent(name):
    with raises("bound to an agent", "no agent"):
        make_rollouts(make_env()).refresh()


def test_an_agent_that_is_not_bound(name):
    agent = AGENTS[name].make(network((3,), 3), network((3,), 1))
    for use in (
        lambda: agent.act(np.zeros(3)),
        lambda: agent.export("nowhere"),
        lambda: agent.observation_shape,
    ):
        with raises("knows its spaces", "bound to no environment"):
            use()


@pytest.mark.parametrize("shape", [(), (4,), (2, 4), (2, 3, 3)])
def test_observation_of_another_shape(name, shape):
    agent = make_agent(AGENTS[name], make_env())
    with raises(r"one observation of shape \(3,\)", "shape"):
        agent.act(np.zeros(shape))


def test_evaluation_arguments(name):
    agent = make_agent(AGENTS[name], make_env())
    with raises("`episodes` to be at least 1", "episodes=0"):
        agent.evaluate(make_env(), episodes=0)
    with raises("no further arguments", "episodes"):
        agent.evaluate(rl.EvaluationDataset(make_env(), 1), episodes=2)
