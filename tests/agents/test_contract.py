"""The contract of every agent of the registry, and of one of each kind.

`tests/export` compares exported agents with their originals.
"""

import functools
import gc
import inspect
import json
import weakref

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.agents import EVERY_AGENT
from support.agents import KINDS
from support.agents import RECURRENT_KINDS
from support.agents import assert_equal_agents
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import fit_twice
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import networks_of
from support.agents import settings_of
from support.agents import slow
from support.agents import weights_of

CASES = {**EVERY_AGENT, **RECURRENT_KINDS}
RECURRENT, *FURTHER = RECURRENT_KINDS
over_kinds = pytest.mark.parametrize(
    "name", ["PPO", "TD3", *slow("SAC", "DQN", *RECURRENT_KINDS)]
)
over_agents = pytest.mark.parametrize(
    "name", [*EVERY_AGENT, RECURRENT, *slow(*FURTHER)]
)

SPACES = [
    *(("PPO", pair) for pair in ("act_multi_discrete", "act_box_matrix")),
    *slow(
        *(
            ("PPO", pair)
            for pair in (
                *(
                    "act_discrete_start",
                    "act_multi_binary",
                    "act_box_unbounded",
                ),
                *("observe_discrete", "observe_image", "observe_float64"),
            )
        ),
        # Critics that take actions see images too.
        ("SAC", "observe_image_act_box"),
        ("SAC", "act_discrete_start"),
        ("TD3", "act_box_matrix"),
    ),
]


def make(name, env, how=make_eager_agent, **settings):
    if CASES[name].recurrent:
        settings["memory"] = keras.layers.LSTMCell(6)
    return how(CASES[name], env, **settings)


@pytest.fixture(scope="module")
def trained():
    """Trains each agent for two rounds, once; returns the results."""

    @functools.cache
    def train(name, pair):
        case = CASES[name]
        env = make_env(pair or case.pair)
        agent = make(name, env)
        return agent, *fit_twice(case, agent, env)

    return lambda name, pair=None: train(name, pair)


def observations(agent, count=5):
    space = agent.observation_space
    space.seed(0)
    return np.stack([space.sample() for _ in range(count)])


def act(agent, observation, **arguments):
    """Returns actions; of an agent that remembers those of first steps."""
    several = np.ndim(observation) > len(agent.observation_space.shape)
    state = agent.initial_state(len(observation) if several else 1)
    if not state:
        return agent.act(observation, **arguments)
    action, after = agent.act(observation, state, **arguments)
    assert differ(state, after)
    return action


# What depends on the algorithm.


@over_agents
def test_fit_changes_its_weights(name, trained):
    agent, history, before = trained(name)
    expected = [CASES[name].env_steps(rounds) for rounds in (1, 2)]
    assert history["env_steps"] == expected
    assert agent.env_steps == expected[-1]
    assert agent.optimizer.iterations.numpy() == 4
    rates = [key for key in history if key.startswith("learning_rate")]
    assert rates
    for key in (*agent.statistics_names, "episode_return", *rates):
        assert np.isfinite(history[key]).all(), key
    assert history["episode_length"] == [5.0, 5.0]
    # Every one of them, else a part of a network is not trained at all.
    for old, variable in zip(before, agent.weights, strict=True):
        new = np.asarray(variable.value)
        assert np.isfinite(new).all(), variable.path
        assert (old != new).any(), variable.path


@over_agents
def test_saved_and_loaded_it_acts_the_same(name, trained, tmp_path):
    agent = trained(name)[0]
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert type(loaded) is type(agent)
    assert loaded.optimizer.iterations.numpy() > 0
    assert_equal_agents(loaded, agent)
    assert settings_of(loaded) == settings_of(agent)
    assert loaded.compile_arguments.jit_compile is False
    assert loaded.run_eagerly
    batch = observations(agent)
    np.testing.assert_array_equal(
        *(act(each, batch, deterministic=True) for each in (loaded, agent))
    )


# Acting.


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        *((name, None) for name in (*KINDS, RECURRENT)),
        *SPACES,
        *slow(*((name, None) for name in FURTHER)),
    ],
)
def test_acts_within_its_space_on_one_and_on_many(name, pair, trained):
    agent = trained(name, pair)[0]
    assert all(np.isfinite(weight).all() for weight in agent.get_weights())
    space, batch = agent.action_space, observations(agent, 7)
    for deterministic in (False, True):
        actions = act(agent, batch, deterministic=deterministic)
        assert actions.shape == (7, *space.shape)
        assert actions.dtype == space.dtype
        assert all(map(space.contains, actions))
        one = act(agent, batch[0], deterministic=deterministic)
        assert np.shape(one) == space.shape
        assert one.dtype == space.dtype
        assert space.contains(one)
    # Deterministic ones are repeated, whatever was done in between.
    act(agent, batch)
    again = act(agent, batch, deterministic=True)
    np.testing.assert_array_equal(actions, again)
    for each, expected in zip(batch, actions, strict=True):
        one = act(agent, each, deterministic=True)
        np.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)
    observation = batch[0]
    if np.issubdtype(observation.dtype, np.floating):
        # In the thousands they leave nothing of a squashed policy's chance.
        observation = np.zeros_like(observation)
    actions = act(agent, np.stack([observation] * 64)).reshape(64, -1)
    assert len(np.unique(actions, axis=0)) > 1


@over_kinds
def test_samples_are_those_of_its_seed(name):
    env, batch = make_env(CASES[name].pair), np.ones((64, 3))
    agents = [make(name, env, seed=seed) for seed in (5, 5, 6)]
    # Greedy actions leave the samples as they were.
    act(agents[0], batch, deterministic=True)
    assert_equal_weights(*agents[:2])
    one, again, other = (act(agent, batch) for agent in agents)
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@over_kinds
def test_evaluate_gives_its_keys_and_changes_nothing(name, trained):
    agent = trained(name)[0]
    before, steps, env = weights_of(agent), agent.env_steps, CASES[name].pair
    results = agent.evaluate(make_env(env), episodes=3, seed=0)
    keys = {"episode_return", "episode_return_std", "episode_length"}
    assert set(results) == keys
    assert results["episode_length"] == 5.0
    assert all(type(value) is float for value in results.values())
    assert results == agent.evaluate(make_env(env), episodes=3, seed=0)
    assert_equal_weights(agent, before)
    assert agent.env_steps == steps


def test_for_env_takes_any_environment():
    env = make_env()
    for given in (env, env.env):
        agent = rl.PPO.for_env(given, hidden=(4,), seed=0)
        assert agent.action_space == env.action_space
        assert agent.compiled


# Saving.


@over_kinds
def test_weights_file_round_trip(name, trained, tmp_path):
    agent = trained(name)[0]
    agent.save_weights(tmp_path / "agent.weights.h5")
    other = make(name, make_env(CASES[name].pair), seed=1)
    other.optimizer.build(other.trainable_variables)
    assert differ(other.get_weights(), agent.get_weights())
    other.load_weights(tmp_path / "agent.weights.h5")
    assert_equal_weights(other, agent)
    assert other.env_steps == agent.env_steps


@pytest.mark.parametrize(
    ("name", "critic_optimizer"),
    [
        ("PPO", keras.optimizers.RMSprop(2e-2)),
        *slow(
            ("SAC", keras.optimizers.RMSprop(2e-2)),
            *((name, None) for name in ("DQN", "TD3", *RECURRENT_KINDS)),
        ),
    ],
)
def test_fit_continues_after_loading(name, critic_optimizer, tmp_path):
    case, env = CASES[name], make_env(CASES[name].pair)
    agent = make(
        name,
        env,
        compile_arguments={
            "optimizer": keras.optimizers.Adam(1e-2),
            "critic_optimizer": critic_optimizer,
        },
        normalize_observations=True,
    )
    agent.fit(case.make_dataset(env), verbose=0)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    for one in (agent, loaded):
        other = case.make_dataset(make_env(case.pair), seed=1)
        one.fit(other, epochs=2, verbose=0)
        assert one.env_steps == case.env_steps(3)
    assert_equal_agents(loaded, agent)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in KINDS else [pytest.mark.slow])
        for name in EVERY_AGENT
    ],
)
def test_config_round_trip_with_nothing_at_its_default(name):
    case = EVERY_AGENT[name]
    settings = case.settings()
    defaults = {
        key: each.default
        for key, each in inspect.signature(case.make).parameters.items()
        if each.kind is each.KEYWORD_ONLY
        and key not in ("observation_space", "action_space")
    }
    assert settings.keys() == defaults.keys()
    assert all(settings[key] != defaults[key] for key in defaults)

    agent = case.make.for_env(make_env(case.pair), **settings)
    config = agent.get_config()
    again = case.make.from_config(json.loads(json.dumps(config)))
    assert settings_of(again) == settings_of(agent)
    assert json.loads(json.dumps(settings_of(agent))) == settings_of(agent)
    assert again.dtype_policy.name == settings["dtype"]
    kept = settings_of(again)
    for key, value in settings.items():
        if not isinstance(value, int | float | str | list):
            assert type(getattr(again, key)) is type(value)
            value = keras.saving.serialize_keras_object(value)
        assert kept[key] == value, key
    assert again.observation_space == agent.observation_space
    assert again.action_space == agent.action_space
    shapes = [v.shape for v in agent.variables]
    assert [v.shape for v in again.variables] == shapes


@pytest.mark.parametrize("name", ["PPO", *slow("SAC", "TD3", "DQN")])
def test_unbound_config_round_trip(name):
    case = EVERY_AGENT[name]
    source = case.make.for_env(make_env(case.pair), seed=0)
    unbound = case.make(**networks_of(source))
    config = unbound.get_config()
    assert config["observation_space"] is None
    again = case.make.from_config(config)
    again.compile(run_eagerly=True)
    again.fit(case.make_dataset(make_env(case.pair)), verbose=0)
    assert again.env_steps == case.env_steps(1)
    # Evaluation binds it as well.
    results = unbound.evaluate(make_env(case.pair), episodes=2, seed=0)
    assert results["episode_length"] == 5.0


# Memory and minibatches.


@pytest.mark.parametrize("name", ["PPO", "SAC", *slow(RECURRENT)])
def test_an_unreferenced_agent_is_collected(name):
    """TensorFlow keeps every generator of a dataset, which must not hold it."""
    case, env = CASES[name], make_env(CASES[name].pair)
    agent = make(name, env, make_agent if name == "PPO" else make_eager_agent)
    agent.fit(
        case.make_dataset(env),
        validation_data=rl.EvaluationDataset(env, 2),
        verbose=0,
    )
    act(agent, observations(agent))
    gone = weakref.ref(agent)
    del agent
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("name", "how"),
    [("PPO", make_eager_agent), *slow(*((name, make_agent) for name in KINDS))],
)
def test_plain_dataset_after_rollouts(name, how):
    """`fit` on minibatches works on an agent that was fitted on rounds."""
    case, env = EVERY_AGENT[name], make_env(EVERY_AGENT[name].pair)
    agent = how(case, env)
    dataset = case.make_dataset(env)
    agent.fit(dataset, verbose=0)
    history = agent.fit(
        dataset.as_dataset(agent),
        epochs=2,
        steps_per_epoch=dataset.steps_per_epoch,
        callbacks=[rl.callbacks.RolloutRefresh(dataset)],
        verbose=0,
    )
    expected = [case.env_steps(rounds) for rounds in (2, 3)]
    assert history.history["env_steps"] == expected
    assert agent.optimizer.iterations.numpy() == 6
    agent.fit(dataset, verbose=0)
    assert agent.optimizer.iterations.numpy() == 8
