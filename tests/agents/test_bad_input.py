"""What cannot work is refused early, saying what was expected and received.

Single arguments are in `test_bad_calls.py`; here is what does not fit together.
"""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium import spaces

import keras_rl2 as rl
from support.agents import ACTION_SPACES
from support.agents import EITHER_DATASET
from support.agents import EVERY_AGENT
from support.agents import KINDS
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

over_kinds = pytest.mark.parametrize("name", KINDS)
over_datasets = pytest.mark.parametrize("name", EITHER_DATASET)

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
BAD_ACTIONS = {**BAD, "Box(0, 3": spaces.Box(0, 3, (2,), np.int32)}


@pytest.fixture
def case(name):
    return EVERY_AGENT[name]


@pytest.fixture
def env(case):
    return make_env(case.pair)


@pytest.fixture(scope="module")
def agents():
    """Agents by name: what is refused leaves them as new."""
    return {
        name: make_agent(case, make_env(case.pair))
        for name, case in EITHER_DATASET.items()
    }


@pytest.fixture
def agent(name, agents):
    return agents[name]


# Spaces.


@over_datasets
def test_spaces_that_no_agent_takes(case):
    for make in (case.make.for_env, case.make_dataset):
        for received, space in BAD.items():
            with raises(r"observation space of Box \(", re.escape(received)):
                make(AnySpaceEnv(space, case.action_space))
        for received, space in BAD_ACTIONS.items():
            with raises(r"action space of Box \(", re.escape(received)):
                make(AnySpaceEnv(BOX, space))
    with raises(r"observation space of Box \(", "Text"):
        case.make(
            **plain_networks(case),
            observation_space=BAD["Text"],
            action_space=case.action_space,
        )


@over_kinds
def test_action_space_of_another_kind(case):
    for action in set(ACTION_SPACES).difference(case.actions):
        received = {"box_unbounded": "None|inf"}.get(
            action, "Box|Multi|Discrete"
        )
        with raises("(action space that|finite bounds)", f"({received})"):
            case.make.for_env(make_env(f"act_{action}"))


@over_datasets
def test_environment_other_than_bound(case, agent):
    before = weights_of(agent)
    for pair in case.pairs[1:]:
        what = "action" if pair.startswith("act") else "observation"
        with raises(f"with the {what} space that", "."):
            agent.fit(case.make_dataset(make_env(pair)))
        with raises(f"with the {what} space that", "."):
            agent.evaluate(make_env(pair))
    assert_equal_weights(agent, before)


# Networks.


def test_actor_output():
    bad = dense((3,), 7), dense((3,), 1)
    for pair, expected in (
        ("act_discrete", "3 units"),
        ("act_multi_discrete", "5 units"),
        ("act_multi_binary", "3 units"),
        ("act_box_matrix", "4 or 8 units"),
    ):
        env = make_env(pair)
        with raises(expected, "7 units"):
            rl.PPO(
                *bad,
                observation_space=env.observation_space,
                action_space=env.action_space,
            )
        # Without spaces, as soon as an environment is known.
        agent = rl.PPO(*bad)
        agent.compile(jit_compile=False)
        with raises(expected, "7 units"):
            agent.fit(make_rollouts(env))


@pytest.mark.parametrize("name", ["PPO", "REINFORCE"])
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


@over_kinds
def test_networks_of_other_inputs_or_types(case, env):
    agent = case.make(**plain_networks(case, inputs=(4,)))
    taken = r"to take observations of shape \(None, 3\)"
    with raises(f"(actor|q_network) {taken}", "Error"):
        agent.bind(env.observation_space, env.action_space)
    networks = plain_networks(case)
    for what in networks:
        with raises(f"`{what}` to be a `keras.Model`", "Dense"):
            case.make(**{**networks, what: keras.layers.Dense(3)})


@over_datasets
def test_an_agent_that_is_not_bound_or_failed_to_bind(case, env):
    agent = case.make(**plain_networks(case))
    for use in (
        lambda: agent.act(np.zeros(3)),
        lambda: agent.export("nowhere"),
        lambda: agent.observation_spec,
    ):
        with raises("knows its spaces", "bound to no environment"):
            use()
    other = make_env(case.pairs[-1])
    assert other.observation_space.shape == (2, 3)
    with pytest.raises(ValueError, match=r"(actor|q_network) to take"):
        agent.bind(other.observation_space, other.action_space)
    with raises("knows its spaces", "bound to no environment"):
        agent.act(np.zeros(3))
    agent.bind(env.observation_space, env.action_space)
    action = agent.act(np.zeros(3, "float32"))
    assert env.action_space.contains(action)


# `compile` and `fit`.


@over_datasets
def test_compile_arguments(agent):
    optimizer = agent.optimizer
    for arguments, received in (
        ({"loss": "mse"}, "`loss`"),
        ({"metrics": ["mse"]}, "`metrics`"),
        ({"actor_optimizer": "adam"}, "actor_optimizer"),
        ({"steps_per_execution": "all"}, "'all'"),
    ):
        with raises("Expected", received):
            agent.compile("adam", **arguments)
    # It is compiled as before.
    assert agent.optimizer is optimizer
    assert agent.get_compile_config()["steps_per_execution"] == "auto"


@over_datasets
def test_steps_per_execution_that_do_not_divide_the_round(case, env):
    agent = make_agent(case, env, compile_arguments={"steps_per_execution": 3})
    with raises("divide the updates of a round, 2", "steps_per_execution=3"):
        agent.fit(case.make_dataset(env))
    assert agent.env_steps == 0


@over_datasets
def test_epochs_and_total_steps(case, env, agent):
    with raises("either `epochs` or `total_steps`", "epochs=1, total_steps=9"):
        agent.fit(case.make_dataset(env), epochs=1, total_steps=9)
    with raises("with `epochs`", "total_steps=9"):
        agent.fit(tf.data.Dataset.range(3), total_steps=9)
    assert agent.env_steps == 0


def test_total_steps_are_those_of_this_call():
    env = make_env()
    agent = make_eager_agent(EVERY_AGENT["PPO"], env)
    dataset = make_rollouts(env)
    agent.fit(dataset, total_steps=17, verbose=0)
    assert agent.env_steps == 32
    agent.fit(dataset, total_steps=16, verbose=0)
    assert agent.env_steps == 48
    history = agent.fit(dataset, total_steps=32, initial_epoch=7, verbose=0)
    assert history.epoch == [7, 8]
    # They make whole epochs.
    dataset = make_rollouts(env, rounds_per_epoch=2, batch_size=16)
    assert agent.fit(dataset, total_steps=33, verbose=0).epoch == [0, 1]


@over_datasets
def test_what_is_no_dataset_or_one_of_another_kind(case, env, agent):
    for given in (env, env.env, "CartPole-v1"):
        with raises("a `keras_rl2", "x="):
            agent.fit(given)
    with raises("a `keras_rl2", "x="):
        agent.fit(np.zeros((4, 3)), y=np.zeros(4))
    other = make_replay(env) if case.on_policy else make_rollouts(env)
    wanted = type(case.make_dataset(env)).__name__
    for use in (agent.fit, lambda given: given.as_dataset(agent)):
        with raises(f"a `keras_rl2.{wanted}` for", type(other).__name__):
            use(other)
    assert agent.env_steps == env.resets == 0
    with raises("bound to an agent", "no agent"):
        case.make_dataset(env).refresh()


@over_datasets
def test_two_refreshes(case, env, agent):
    dataset = case.make_dataset(env)
    refreshes = [
        rl.callbacks.RolloutRefresh(d)
        for d in (dataset, case.make_dataset(make_env(case.pair)))
    ]
    for given in (refreshes, refreshes[1:]):
        with raises("at most one `RolloutRefresh`", str(len(given))):
            agent.fit(dataset, callbacks=given, verbose=0)


def test_batch_larger_than_the_rollout():
    with raises("at most the rollout.* = 8 x 2 = 16", "batch_size=17"):
        make_rollouts(make_env(), batch_size=17)


@over_datasets
def test_arguments_of_act_and_evaluate(env, agent):
    for shape in ((), (4,), (2, 4), (2, 3, 3)):
        with raises(r"one observation of shape \(3,\)", "shape"):
            agent.act(np.zeros(shape))
    with raises("no further arguments", "episodes"):
        agent.evaluate(rl.EvaluationDataset(env, 1), episodes=2)
