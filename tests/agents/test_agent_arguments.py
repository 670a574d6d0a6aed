"""Each argument has its effect, or is refused early with a remedy.

`test_bad_calls.py` tests invalid values of single arguments.
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
from support.agents import slow
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
    """Agents by name. Refused calls leave them unchanged."""
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
def test_an_agent_that_failed_to_bind_can_be_bound(case, env):
    agent = case.make(**plain_networks(case))
    other = make_env(case.pairs[-1])
    assert other.observation_space.shape == (2, 3)
    with pytest.raises(ValueError, match=r"(actor|q_network) to take"):
        agent.bind(other.observation_space, other.action_space)
    with raises("knows its spaces", "bound to no environment"):
        agent.act(np.zeros(3))
    agent.bind(env.observation_space, env.action_space)
    assert env.action_space.contains(agent.act(np.zeros(3, "float32")))


# `compile` and `fit`.


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
    assert history.epoch == [7]
    assert agent.env_steps == 80
    # They make whole epochs.
    dataset = make_rollouts(env, rounds_per_epoch=2, batch_size=16)
    assert agent.fit(dataset, total_steps=33, verbose=0).epoch == [0, 1]


@over_datasets
def test_fit_refuses_other_objects_and_datasets_of_another_kind(
    case, env, agent
):
    other = make_replay(env) if case.on_policy else make_rollouts(env)
    wanted = type(case.make_dataset(env)).__name__
    for given, named in (
        (env, "env"),
        (env.env, "env"),
        ("CartPole-v1", "'CartPole-v1'"),
        (np.zeros((4, 3)), ""),
    ):
        with raises(f"a `keras_rl2.*{wanted}.*{named}", "x="):
            agent.fit(given)
    for use in (agent.fit, lambda given: given.as_dataset(agent)):
        with raises(f"a `keras_rl2.{wanted}` for", type(other).__name__):
            use(other)
    assert agent.env_steps == env.resets == 0
    with raises("bound to an agent", "no agent"):
        case.make_dataset(env).refresh()


@pytest.mark.parametrize("name", ["PPO"])
def test_arguments_of_act_and_evaluate(env, agent):
    for shape in ((), (4,), (2, 4), (2, 3, 3)):
        with raises(r"one observation of shape \(3,\)", "shape"):
            agent.act(np.zeros(shape))
    for episodes in (2, 10):
        with raises("no further arguments", "episodes"):
            agent.evaluate(rl.EvaluationDataset(env, 1), episodes=episodes)
    with raises("Expected a state", r"shapes \[\(\)\]"):
        agent.act(np.zeros(3), True)


# Constructor and `for_env`.


def test_an_unknown_argument_names_the_nearest():
    case = EVERY_AGENT["PPO"]
    kind, env = case.make, make_env()
    wanted = r"that \w+ takes, perhaps `gamma`. Received: gama=1"
    with pytest.raises(TypeError, match=wanted):
        kind.for_env(env, gama=1)
    with pytest.raises(TypeError, match=wanted):
        kind(**plain_networks(case), gama=1)
    with pytest.raises(TypeError, match=r"one of .*hidden") as caught:
        kind.for_env(env, wholly_unknown=1)
    assert not {"actor", "critic", "action_space"}.intersection(
        str(caught.value).replace(",", " ").split()
    )


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        *(("PPO", "tau"), ("A2C", "tau"), ("DDPG", "policy_delay")),
        ("REINFORCE", "gae_lambda"),
    ],
)
def test_for_env_refuses_arguments_that_the_algorithm_fixes(name, argument):
    case = EVERY_AGENT[name]
    with pytest.raises(TypeError, match=f"Received: {argument}=1"):
        case.make.for_env(make_env(case.pair), **{argument: 1})


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_a_dtype_is_that_of_the_networks(dtype):
    agent = make_eager_agent(EVERY_AGENT["PPO"], make_env(), dtype=dtype)
    (network,) = agent.acting_networks
    hidden = network.get_layer("hidden_0")
    assert hidden.compute_dtype == dtype.removeprefix("mixed_")
    assert {w.dtype for w in agent.acting_variables} == {"float32"}
    assert keras.config.dtype_policy().name == "float32"
    assert agent.act(np.zeros((4, 3))).shape[0] == 4


def test_a_stateful_layer_is_refused():
    network = keras.Sequential(
        [
            keras.Input((3,), batch_size=2),
            keras.layers.Reshape((1, 3)),
            keras.layers.LSTM(4, stateful=True),
            keras.layers.Dense(3),
        ]
    )
    env = make_env()
    with pytest.raises(ValueError, match=r"FrameStackObservation.*stateful=T"):
        rl.DQN(network).bind(env.observation_space, env.action_space)


def test_total_steps_and_the_warm_up():
    """`total_steps` includes the warm-up, and has to exceed it."""
    env = make_env()
    agent = make_eager_agent(EVERY_AGENT["DQN"], env)
    with pytest.raises(ValueError, match=r"more than the 128 steps"):
        agent.fit(make_replay(env, warm_up=120), total_steps=100, verbose=0)
    assert agent.env_steps == 0
    replay = make_replay(
        env,
        warm_up=120,
        steps_per_round=64,
        updates_per_round=1,
        rounds_per_epoch=100,
    )
    agent.fit(replay, total_steps=130, verbose=0)
    assert 130 <= agent.env_steps < 130 + 2 * 64


# `act` and `export`.


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("PPO", "act_multi_discrete"),
        ("SAC", "act_box"),
        *slow(("PPO", "act_box_matrix"), ("SAC", "act_discrete_start")),
    ],
)
def test_the_log_prob_is_that_of_the_action_that_is_returned(name, pair):
    agent = make_agent(EVERY_AGENT[name], make_env(pair))
    batch = np.random.default_rng(0).normal(size=(7, 3)).astype("float32")
    for deterministic in (False, True):
        action, log_prob = agent.act(
            batch, deterministic=deterministic, return_log_prob=True
        )
        assert log_prob.shape == (7,)
        assert log_prob.dtype == np.float32
        assert all(map(agent.action_space.contains, action))
        own = agent.policy.head.from_environment(action)
        expected = agent.distribution(batch).log_prob(own)
        np.testing.assert_allclose(log_prob, expected, rtol=1e-3, atol=1e-4)
    one, log_prob = agent.act(batch[0], return_log_prob=True)
    assert agent.action_space.contains(one)
    assert np.shape(log_prob) == ()


@pytest.mark.parametrize("name", ["DQN", "TD3"])
def test_a_policy_without_probabilities_gives_none(name):
    case = EVERY_AGENT[name]
    agent = make_agent(case, make_env(case.pair))
    with pytest.raises(ValueError, match="have no log-probability"):
        agent.act(np.zeros(3), return_log_prob=True)


# Observations and files.


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1.0, 1.0, (), np.float32),
        spaces.Box(0, 255, (2, 36, 36, 3), np.uint8),
    ],
)
def test_a_box_of_one_number_and_a_stack_of_colour_images(space):
    env = AnySpaceEnv(space, spaces.Discrete(3))
    agent = make_eager_agent(EVERY_AGENT["PPO"], env)
    batch = np.stack([space.sample() for _ in range(3)])
    assert agent.act(batch).shape == (3,)
    assert np.shape(agent.act(batch[0])) == ()
    kinds = {type(layer) for layer in agent.acting_networks[0].layers}
    assert (keras.layers.Conv2D in kinds) == (len(space.shape) == 4)


@pytest.mark.parametrize("name", ["PPO", *slow("SAC")])
def test_an_agent_that_was_never_compiled_is_saved(name, tmp_path):
    case = EVERY_AGENT[name]
    env = make_env(case.pair)
    agent = case.make(
        **make_agent(case, env).given_networks(),
        observation_space=env.observation_space,
        action_space=env.action_space,
    )
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert_equal_weights(loaded, agent)
    loaded.run_eagerly = True
    loaded.fit(case.make_dataset(env), verbose=0)
    assert loaded.env_steps > 0
    loaded.save(tmp_path / "agent.keras")
    for one in (loaded, keras.models.load_model(tmp_path / "agent.keras")):
        paths = [variable.path for variable in one.variables]
        assert len(set(paths)) == len(paths)
        # What Keras' OrbaxCheckpoint writes.
        assert one.get_state_tree()
