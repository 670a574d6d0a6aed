"""What cannot work is refused early, saying what was expected and received."""

import functools
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from support.agents import ACTION_SPACES
from support.agents import ACTOR_CRITICS
from support.agents import ANY
from support.agents import EITHER_KIND
from support.agents import EVERY_AGENT
from support.agents import AnySpaceEnv
from support.agents import assert_equal_weights
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.agents import make_rollouts
from support.agents import weights_of
from support.errors import raises
from support.plain_networks import dense
from support.plain_networks import plain_networks


def over_agents(test):
    """Runs a test over agents: all of them, or one of either kind."""
    test = pytest.mark.parametrize("name", EVERY_AGENT)(test)
    return pytest.mark.rotate(name=EITHER_KIND)(test)


actor_critics = pytest.mark.parametrize("name", ACTOR_CRITICS)

BOX = spaces.Box(-1.0, 1.0, (3,), np.float32)
# By what the error names.
BAD = {
    "Dict()": spaces.Dict({}),
    "Tuple()": spaces.Tuple([]),
    "Text": spaces.Text(4),
    "Sequence": spaces.Sequence(BOX),
    "Graph": spaces.Graph(BOX, None),
    "b.0: Text": spaces.Dict({"a": BOX, "b": spaces.Tuple([spaces.Text(4)])}),
}
BAD_OBSERVATIONS = BAD
BAD_ACTIONS = {**BAD, "Box(0, 3": spaces.Box(0, 3, (2,), np.int32)}


@pytest.fixture
def case(name):
    return EVERY_AGENT[name]


@pytest.fixture
def env(case):
    return make_env(case.pair)


@pytest.fixture(scope="module")
def agents():
    """Makes agents by name, each once: what is refused leaves them as new."""

    @functools.cache
    def made(name):
        case = EVERY_AGENT[name]
        return make_agent(case, make_env(case.pair))

    return made


@pytest.fixture
def agent(name, agents):
    return agents(name)


# Spaces.


@over_agents
@pytest.mark.parametrize("space", BAD_OBSERVATIONS)
def test_observation_space(case, space):
    env = AnySpaceEnv(BAD_OBSERVATIONS[space], case.action_space)
    for make in (case.make.for_env, case.make_dataset):
        with raises(r"observation space of Box \(", re.escape(space)):
            make(env)


@over_agents
@pytest.mark.parametrize("space", BAD_ACTIONS)
def test_action_space(case, space):
    env = AnySpaceEnv(BOX, BAD_ACTIONS[space])
    for make in (case.make.for_env, case.make_dataset):
        with raises(r"action space of Box \(", re.escape(space)):
            make(env)


@pytest.mark.parametrize(
    ("name", "action"),
    [
        (name, action)
        for name, case in EVERY_AGENT.items()
        for action in ACTION_SPACES
        if action not in case.actions
    ],
)
def test_action_space_of_another_kind(case, name, action):
    received = {"box_unbounded": "None|inf"}.get(action, "Box|Multi|Discrete")
    with raises("(action space that|finite bounds)", f"({received})"):
        case.make.for_env(make_env(f"act_{action}"))


@over_agents
def test_spaces_of_the_constructor(case):
    with raises(r"observation space of Box \(", "Text"):
        case.make(
            **plain_networks(case),
            observation_space=BAD_OBSERVATIONS["Text"],
            action_space=case.action_space,
        )


@over_agents
@pytest.mark.parametrize("what", ["action", "observation"])
def test_environment_other_than_bound(case, agent, what):
    before = weights_of(agent)
    others = {
        "action": [pair for pair in case.pairs if pair.startswith("act_")][1:],
        "observation": case.pairs[-2:],
    }
    for pair in others[what]:
        with raises(f"with the {what} space that", "."):
            agent.fit(case.make_dataset(make_env(pair)))
        with raises(f"with the {what} space that", "."):
            agent.evaluate(make_env(pair))
    assert_equal_weights(agent, before)


# Networks.


@actor_critics
@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("act_discrete", "3 units"),
        ("act_multi_discrete", "5 units"),
        ("act_multi_binary", "3 units"),
        ("act_box_matrix", "4 or 8 units"),
    ],
)
def test_actor_output(case, pair, expected):
    env = make_env(pair)
    bad = dense((3,), 7), dense((3,), 1)
    with raises(expected, "7 units"):
        case.make(
            *bad,
            observation_space=env.observation_space,
            action_space=env.action_space,
        )
    # Without spaces, as soon as an environment is known.
    agent = case.make(*bad)
    agent.compile(jit_compile=False)
    with raises(expected, "7 units"):
        agent.fit(make_rollouts(env))


@actor_critics
def test_critic_output(case, env):
    agent = case.make(**plain_networks(case, value_units=2))
    with raises("critic's output to have 1 unit", "2 units"):
        agent.bind(env.observation_space, env.action_space)
    alone = case.make(dense((3,), 3))
    if alone.needs_value:
        with raises("a critic, or one network with two outputs", "critic=None"):
            alone.bind(env.observation_space, env.action_space)
    else:
        alone.bind(env.observation_space, env.action_space)
        np.testing.assert_array_equal(alone.value(np.ones((2, 3))), [0.0, 0.0])


@over_agents
def test_network_input(case, env):
    agent = case.make(**plain_networks(case, inputs=(4,)))
    taken = r"to take observations of shape \(None, 3\)"
    with raises(f"(actor|q_network) {taken}", "Error"):
        agent.bind(env.observation_space, env.action_space)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (name, what)
        for name, case in EVERY_AGENT.items()
        for what in plain_networks(case)
    ],
)
def test_network_type(case, what):
    networks = {**plain_networks(case), what: keras.layers.Dense(3)}
    with raises(f"`{what}` to be a `keras.Model`", "Dense"):
        case.make(**networks)


@over_agents
def test_an_agent_that_failed_to_bind_can_be_bound_again(case, env):
    agent = case.make(**plain_networks(case))
    other = make_env(case.pairs[-1])
    assert other.observation_space.shape == (2, 3)
    with pytest.raises(ValueError, match=r"(actor|q_network) to take"):
        agent.bind(other.observation_space, other.action_space)
    with raises("knows its spaces", "bound to no environment"):
        agent.act(np.zeros(3))
    agent.bind(env.observation_space, env.action_space)
    action = agent.act(np.zeros(3, "float32"))
    assert env.action_space.contains(action)


# Numbers.


@over_agents
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gamma", 1.1),
        ("gamma", -0.1),
        ("gamma", "0.9"),
        ("gamma", float("nan")),
        ("max_gradient_norm", -1.0),
        ("max_gradient_norm", 0.0),
    ],
)
def test_hyper_parameters(case, env, key, value):
    with raises(f"`{key}` to be a number", key):
        case.make.for_env(env, **{key: value})


@actor_critics
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("gae_lambda", 2.0),
        ("entropy_coefficient", -1.0),
        ("value_coefficient", -1.0),
        ("initial_log_std", float("nan")),
    ],
)
def test_hyper_parameters_of_policy_gradients(case, env, key, value):
    if key not in case.make.argument_names():
        with pytest.raises(TypeError, match=key):
            case.make.for_env(env, **{key: value})
        return
    with raises(f"`{key}` to be a number", key):
        case.make.for_env(env, **{key: value})


@pytest.mark.parametrize("name", ["SAC"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("temperature", 0.0),
        ("temperature", "1"),
        ("target_entropy", float("inf")),
    ],
)
def test_hyper_parameters_of_sac(case, env, key, value):
    with raises(f"`{key}` to be a number", key):
        case.make.for_env(env, **{key: value})


@pytest.mark.parametrize(
    "key", ["horizon", "passes", "batch_size", "rounds_per_epoch", "num_envs"]
)
@pytest.mark.parametrize("value", [0, -1, 1.5, "8"])
def test_sizes_of_rollouts(key, value):
    with raises(f"`{key}` to be an integer of at least 1", f"{key}="):
        rl.RolloutDataset("CartPole-v1", **{key: value})


def test_batch_larger_than_the_rollout():
    with raises("at most the rollout.* = 8 x 2 = 16", "batch_size=17"):
        make_rollouts(make_env(), batch_size=17)


# `compile` and `fit`.


@over_agents
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
def test_compile_arguments(agent, arguments, received):
    optimizer = agent.optimizer
    with raises("Expected", received):
        agent.compile("adam", **arguments)
    # It is compiled as before.
    assert agent.optimizer is optimizer
    assert agent.get_compile_config()["steps_per_execution"] == "auto"


@over_agents
def test_steps_per_execution_that_do_not_divide_the_round(case, env):
    agent = make_agent(case, env, compile_arguments={"steps_per_execution": 3})
    with raises("divide the updates of a round, 2", "steps_per_execution=3"):
        agent.fit(case.make_dataset(env))
    assert agent.env_steps == 0


@over_agents
def test_epochs_and_total_steps(case, env, agent):
    with raises("either `epochs` or `total_steps`", "epochs=1, total_steps=9"):
        agent.fit(case.make_dataset(env), epochs=1, total_steps=9)
    with raises(
        "`total_steps` to be an integer of at least 1", "total_steps=0"
    ):
        agent.fit(case.make_dataset(env), total_steps=0)
    assert agent.env_steps == 0


@pytest.mark.rotate(name=ANY)
@pytest.mark.parametrize("name", EVERY_AGENT)
def test_total_steps_are_those_of_this_call(case, env):
    agent = make_eager_agent(case, env)
    dataset, one_round = case.make_dataset(env), case.env_steps(1)
    agent.fit(dataset, total_steps=one_round + 1, verbose=0)
    assert agent.env_steps == 2 * one_round
    agent.fit(dataset, total_steps=one_round, verbose=0)
    assert agent.env_steps == 3 * one_round
    history = agent.fit(
        dataset, total_steps=2 * one_round, initial_epoch=7, verbose=0
    )
    assert history.epoch == [7, 8]


@over_agents
@pytest.mark.parametrize("given", ["adapter", "environment", "id"])
def test_an_environment_in_place_of_a_dataset(env, agent, given):
    x = {"adapter": env, "environment": env.env, "id": "CartPole-v1"}[given]
    with raises("a `keras_rl2", "x="):
        agent.fit(x)
    with raises("a `keras_rl2", "x="):
        agent.fit(np.zeros((4, 3)), y=np.zeros(4))


@over_agents
def test_the_other_kind_of_dataset(case, env, agent):
    other = make_replay(env) if case.on_policy else make_rollouts(env)
    wanted = type(case.make_dataset(env)).__name__
    with raises(f"a `keras_rl2.{wanted}` for", type(other).__name__):
        agent.fit(other)
    with raises(f"a `keras_rl2.{wanted}` for", type(other).__name__):
        other.as_dataset(agent)
    assert agent.env_steps == env.resets == 0


@over_agents
def test_total_steps_of_a_plain_dataset(agent):
    with raises("with `epochs`", "total_steps=9"):
        agent.fit(tf.data.Dataset.range(3), total_steps=9)


@over_agents
def test_two_refreshes(case, env, agent):
    dataset = case.make_dataset(env)
    refreshes = [
        rl.callbacks.RolloutRefresh(d)
        for d in (dataset, case.make_dataset(make_env(case.pair)))
    ]
    for given in (refreshes, refreshes[1:]):
        with raises("at most one `RolloutRefresh`", str(len(given))):
            agent.fit(dataset, callbacks=given, verbose=0)


@over_agents
def test_a_dataset_without_an_agent(case, env):
    with raises("bound to an agent", "no agent"):
        case.make_dataset(env).refresh()


@over_agents
def test_an_agent_that_is_not_bound(case):
    agent = case.make(**plain_networks(case))
    for use in (
        lambda: agent.act(np.zeros(3)),
        lambda: agent.export("nowhere"),
        lambda: agent.observation_spec,
    ):
        with raises("knows its spaces", "bound to no environment"):
            use()


@over_agents
@pytest.mark.parametrize("shape", [(), (4,), (2, 4), (2, 3, 3)])
def test_observation_of_another_shape(agent, shape):
    with raises(r"one observation of shape \(3,\)", "shape"):
        agent.act(np.zeros(shape))


@over_agents
def test_evaluation_arguments(env, agent):
    with raises("`episodes` to be an integer of at", "episodes=0"):
        agent.evaluate(env, episodes=0)
    with raises("no further arguments", "episodes"):
        agent.evaluate(rl.EvaluationDataset(env, 1), episodes=2)
