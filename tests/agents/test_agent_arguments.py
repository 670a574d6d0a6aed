"""Each argument does what it asks for, or is refused with what to do."""

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from support.agents import EVERY_AGENT
from support.agents import AnySpaceEnv
from support.agents import assert_equal_weights
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.agents import make_rollouts
from support.agents import slow
from support.plain_networks import plain_networks

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
    with pytest.raises(TypeError, match=r"`agent.compile\(keras.optimizers"):
        kind.for_env(env, learning_rate=1e-3)


def test_what_an_algorithm_settles_itself_is_not_taken():
    for name, argument in (
        *(("PPO", "tau"), ("A2C", "tau"), ("DDPG", "policy_delay")),
        ("REINFORCE", "gae_lambda"),
    ):
        case = EVERY_AGENT[name]
        with pytest.raises(TypeError, match=f"Received: {argument}=1"):
            case.make.for_env(make_env(case.pair), **{argument: 1})


def test_targets_follow_by_arguments(tmp_path):
    case = EVERY_AGENT["SAC"]
    agent = make_agent(case, make_env(case.pair), tau=0.25, target_every=3)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    for one in (agent, loaded):
        assert (one.tau, one.target_every) == (0.25, 3)
        moves = one.target_networks.present
        assert {(move.tau, move.every) for move in moves} == {(0.25, 3)}


def test_a_dtype_is_that_of_the_networks():
    for dtype in ("mixed_bfloat16", "mixed_float16"):
        agent = make_eager_agent(EVERY_AGENT["PPO"], make_env(), dtype=dtype)
        (network,) = agent.acting_networks
        computed_in = {
            layer.compute_dtype
            for layer in network.layers
            if isinstance(layer, keras.layers.Dense)
        }
        assert computed_in == {dtype.removeprefix("mixed_")}
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


# `fit`.


def test_fit_names_what_it_does_not_take():
    agent = make_agent(EVERY_AGENT["PPO"], make_env())
    for name in ("steps_per_epoch", "class_weight", "batch_size", "y"):
        with pytest.raises(ValueError, match=f"`fit` without `{name}`; use"):
            agent.fit(make_rollouts(make_env()), **{name: 3})
    assert agent.env_steps == 0


@pytest.mark.parametrize(
    ("name", "kind"), [("SAC", "ReplayDataset"), ("PPO", "RolloutDataset")]
)
def test_fit_of_an_environment_names_the_dataset_it_wants(name, kind):
    case = EVERY_AGENT[name]
    agent = make_agent(case, make_env(case.pair))
    with pytest.raises(ValueError, match=rf"{kind}\('Pendulum-v1'\)"):
        agent.fit("Pendulum-v1")
    with pytest.raises(ValueError, match=rf"{kind}\(env\)"):
        agent.fit(gymnasium.make("Pendulum-v1"))


def test_total_steps_and_the_warm_up():
    """They are never doubled, and refused where nothing would be learned."""
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
        action, log_prob = agent.act(batch, deterministic, return_log_prob=True)
        assert log_prob.shape == (7,)
        assert log_prob.dtype == np.float32
        assert all(map(agent.action_space.contains, action))
        own = agent.policy_head.from_environment(action)
        expected = agent.distribution(batch).log_prob(own)
        np.testing.assert_allclose(log_prob, expected, rtol=1e-3, atol=1e-4)
    one, log_prob = agent.act(batch[0], return_log_prob=True)
    assert agent.action_space.contains(one)
    assert np.shape(log_prob) == ()


def test_a_policy_without_probabilities_gives_none():
    for name in ("DQN", "TD3"):
        case = EVERY_AGENT[name]
        agent = make_agent(case, make_env(case.pair))
        with pytest.raises(ValueError, match="have no log-probability"):
            agent.act(np.zeros(3), return_log_prob=True)


@pytest.mark.parametrize("name", ["SAC", *slow("PPO", "DQN", "TD3")])
def test_a_stochastic_export_takes_noise(name, tmp_path):
    case = EVERY_AGENT[name]
    agent = make_agent(case, make_env(case.pair))
    agent.export(tmp_path / "policy", deterministic=False)
    policy = tf.saved_model.load(str(tmp_path / "policy"))
    batch = np.random.default_rng(0).normal(size=(6, 3)).astype("float32")
    noise, _ = agent.draw_noise(np.random.default_rng(1), (6,))
    expected = agent.policy_function(deterministic=False)(batch, noise)[-1]
    np.testing.assert_allclose(policy.serve(batch, noise), expected, rtol=1e-5)


# Observations and files.


def test_a_box_of_one_number_and_a_stack_of_colour_images():
    for space in (
        gymnasium.spaces.Box(-1.0, 1.0, (), np.float32),
        gymnasium.spaces.Box(0, 255, (2, 36, 36, 3), np.uint8),
    ):
        case = EVERY_AGENT["PPO"]
        env = AnySpaceEnv(space, gymnasium.spaces.Discrete(3))
        agent = make_eager_agent(case, env)
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
