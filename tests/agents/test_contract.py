"""What every agent keeps, whatever it observes and does."""

import gc
import inspect
import json
import subprocess
import sys
import weakref

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.agents import ANY
from support.agents import EVERY_AGENT as AGENTS
from support.agents import PAIRS
from support.agents import SPACES
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import fit_twice
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import networks_of
from support.agents import settings_of
from support.agents import weights_of
from support.selection import asked_for

over_agents = pytest.mark.parametrize("name", AGENTS)


# Critics that take actions see images too; all else is encoded alike.
ENOUGH_PAIRS = [*SPACES, "observe_image_act_box"]


def over_spaces(test):
    """Runs a test over agents and spaces: each of either, or all pairs."""
    over_pairs = pytest.mark.parametrize(("name", "pair"), PAIRS)
    return pytest.mark.spread(pair=ENOUGH_PAIRS)(over_pairs(test))


def over_few_spaces(test):
    """Runs a test of what `Agent` does for one agent and two pairs of spaces.

    All agents, in all their spaces, are run by the slow layer.
    """
    over_pairs = pytest.mark.parametrize(("name", "pair"), PAIRS)
    few = pytest.mark.spread(pair=["act_box_matrix", "observe_image"])
    return few(pytest.mark.rotate(name=ANY)(over_pairs(test)))


_LOADING = """
import json, sys
import numpy as np
import tensorflow as tf
for folder in json.loads(sys.argv[1]):
    policy = tf.saved_model.load(folder)
    observation = np.load(folder + "/observation.npy")
    np.save(folder + "/action.npy", policy.serve(observation).numpy())
assert "keras_rl2" not in sys.modules
"""


@pytest.fixture(scope="module")
def trained():
    """Agents after two rounds, by agent and pair of spaces; made once."""
    made = {}

    def get(name, pair):
        if (name, pair) not in made:
            case, env = AGENTS[name], make_env(pair)
            # Tracing of updates that are made four times takes longest;
            # `test_tracing` and others run them traced.
            agent = make_eager_agent(case, env)
            made[name, pair] = agent, *fit_twice(case, agent, env)
        return made[name, pair]

    return get


def observations(agent, count=5, seed=0):
    space = agent.observation_space
    space.seed(seed)
    return np.stack([space.sample() for _ in range(count)])


@over_spaces
def test_fit_changes_weights_and_reports(name, pair, trained):
    agent, history, before = trained(name, pair)
    expected = [AGENTS[name].env_steps(rounds) for rounds in (1, 2)]
    assert history["env_steps"] == expected
    assert agent.env_steps == expected[-1]
    assert agent.optimizer.iterations.numpy() == 4
    rates = [key for key in history if key.startswith("learning_rate")]
    assert rates
    for key in (*agent.statistics_names, "episode_return", *rates):
        assert np.isfinite(history[key]).all(), key
    assert history["episode_length"] == [5.0, 5.0]
    for weight in agent.get_weights():
        assert np.isfinite(weight).all()
    # Every one of them, else a part of a network is not trained at all.
    for old, new in zip(before, agent.get_weights(), strict=True):
        assert (old != new).any()


@over_spaces
@pytest.mark.parametrize("deterministic", [False, True])
def test_act_on_one_and_on_many(name, pair, deterministic, trained):
    agent = trained(name, pair)[0]
    space = agent.action_space
    batch = observations(agent, 7)
    actions = agent.act(batch, deterministic=deterministic)
    assert actions.shape == (7, *space.shape)
    assert actions.dtype == space.dtype
    for action in actions:
        assert space.contains(action)
    one = agent.act(batch[0], deterministic=deterministic)
    assert np.shape(one) == space.shape
    assert one.dtype == space.dtype
    assert space.contains(one)


@over_few_spaces
def test_deterministic_actions_repeat(name, pair, trained):
    agent = trained(name, pair)[0]
    batch = observations(agent)
    first = agent.act(batch, deterministic=True)
    agent.act(batch)
    np.testing.assert_array_equal(first, agent.act(batch, deterministic=True))
    for i, observation in enumerate(batch):
        one = agent.act(observation, deterministic=True)
        np.testing.assert_allclose(one, first[i], rtol=1e-5, atol=1e-6)


@over_spaces
def test_stochastic_actions_vary(name, pair, trained):
    agent = trained(name, pair)[0]
    observation = observations(agent)[0]
    if np.issubdtype(observation.dtype, np.floating):
        # In the thousands they leave nothing of a squashed policy's chance.
        observation = np.zeros_like(observation)
    batch = np.stack([observation] * 64)
    actions = agent.act(batch).reshape(64, -1)
    assert len(np.unique(actions, axis=0)) > 1


@over_few_spaces
def test_evaluate_gives_its_keys_and_changes_nothing(name, pair, trained):
    agent = trained(name, pair)[0]
    before, steps = weights_of(agent), agent.env_steps
    results = agent.evaluate(make_env(pair), episodes=3, seed=0)
    assert set(results) == {
        "episode_return",
        "episode_return_std",
        "episode_length",
    }
    assert results["episode_length"] == 5.0
    assert all(type(value) is float for value in results.values())
    assert results == agent.evaluate(make_env(pair), episodes=3, seed=0)
    assert_equal_weights(agent, before)
    assert agent.env_steps == steps


@over_spaces
def test_saved_and_loaded_agent_is_the_same(name, pair, trained, tmp_path):
    agent = trained(name, pair)[0]
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert type(loaded) is type(agent)
    assert loaded.env_steps == agent.env_steps
    assert_equal_weights(loaded, agent)
    assert loaded.optimizer.iterations.numpy() > 0
    assert_equal_weights(
        [v.numpy() for v in loaded.optimizer.variables],
        [v.numpy() for v in agent.optimizer.variables],
    )
    assert settings_of(loaded) == settings_of(agent)
    assert loaded.compile_arguments.jit_compile is False
    assert loaded.run_eagerly
    batch = observations(agent)
    np.testing.assert_array_equal(
        loaded.act(batch, deterministic=True),
        agent.act(batch, deterministic=True),
    )


@over_few_spaces
def test_weights_file_round_trip(name, pair, trained, tmp_path):
    agent = trained(name, pair)[0]
    agent.save_weights(tmp_path / "agent.weights.h5")
    other = make_agent(AGENTS[name], make_env(pair), seed=1)
    other.optimizer.build(other.trainable_variables)
    assert differ(other.get_weights(), agent.get_weights())
    other.load_weights(tmp_path / "agent.weights.h5")
    assert_equal_weights(other, agent)
    assert other.env_steps == agent.env_steps


@pytest.fixture(scope="module")
def exported(request, trained, tmp_path_factory):
    """Actions by agent and pair: expected, and those of one new process."""
    expected = {}
    for name, pair in asked_for(request, "exported", name=None, pair=None):
        agent = trained(name, pair)[0]
        folder = str(tmp_path_factory.mktemp("exported") / "policy")
        agent.export(folder)
        batch = observations(agent).astype(agent.observation_spec.dtype)
        np.save(folder + "/observation.npy", batch)
        actions = agent.act(batch, deterministic=True)
        expected[name, pair] = folder, actions
    folders = [folder for folder, _ in expected.values()]
    subprocess.run(
        [sys.executable, "-c", _LOADING, json.dumps(folders)],
        check=True,
        capture_output=True,
    )
    return {
        key: (actions, np.load(folder + "/action.npy"))
        for key, (folder, actions) in expected.items()
    }


@pytest.mark.slow
@over_spaces
def test_exported_policy_acts_alike_in_a_new_process(name, pair, exported):
    expected, actions = exported[name, pair]
    assert actions.shape == expected.shape
    np.testing.assert_allclose(actions, expected, rtol=1e-6)


@pytest.mark.spread(pair=["act_box_matrix"], two_optimizers=[True])
@pytest.mark.rotate(name=ANY)
@pytest.mark.parametrize(
    ("name", "pair", "two_optimizers"),
    [
        (name, f"act_{action}", two)
        for action, two in (("discrete", False), ("box_matrix", True))
        for name, case in AGENTS.items()
        if action in case.actions and (not two or "critic" in case.networks)
    ],
)
def test_fit_goes_on_after_loading(name, pair, two_optimizers, tmp_path):
    case, env = AGENTS[name], make_env(pair)
    compile_arguments = {
        "optimizer": keras.optimizers.Adam(1e-2),
        "critic_optimizer": (
            keras.optimizers.RMSprop(2e-2) if two_optimizers else None
        ),
    }
    agent = make_eager_agent(
        case,
        env,
        compile_arguments=compile_arguments,
        normalize_observations=True,
    )
    agent.fit(case.make_dataset(env), verbose=0)
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    for one in (agent, loaded):
        other = case.make_dataset(make_env(pair), seed=1)
        one.fit(other, epochs=2, verbose=0)
        assert one.env_steps == case.env_steps(3)
    assert_equal_weights(loaded, agent)
    assert_equal_weights(
        [v.numpy() for v in loaded.optimizer.variables],
        [v.numpy() for v in agent.optimizer.variables],
    )


def constructor_defaults(agent_class):
    """Returns the defaults of all keyword arguments."""
    return {
        name: each.default
        for name, each in inspect.signature(agent_class).parameters.items()
        if each.kind is each.KEYWORD_ONLY
    }


@over_agents
def test_config_round_trip_with_nothing_at_its_default(name):
    case = AGENTS[name]
    settings = case.settings()
    defaults = constructor_defaults(case.make)
    for what in ("observation_space", "action_space"):
        del defaults[what]
    assert set(settings) == set(defaults), "`settings` is not complete"
    assert all(settings[key] != defaults[key] for key in defaults)

    agent = case.make.for_env(make_env(case.pair), **settings)
    config = agent.get_config()
    again = case.make.from_config(json.loads(json.dumps(config)))
    assert settings_of(again) == settings_of(agent)
    assert json.loads(json.dumps(settings_of(agent))) == settings_of(agent)
    assert again.dtype_policy.name == settings["dtype"]
    kept = settings_of(again)
    for key, value in settings.items():
        if not isinstance(value, (int, float, str, tuple)):
            assert type(getattr(again, key)) is type(value)
            value = keras.saving.serialize_keras_object(value)
        assert kept[key] == (list(value) if key == "support" else value), key
    assert again.observation_space == agent.observation_space
    assert again.action_space == agent.action_space
    shapes = [v.shape for v in agent.variables]
    assert [v.shape for v in again.variables] == shapes


@pytest.mark.rotate(name=ANY)
@over_agents
def test_unbound_config_round_trip(name):
    case = AGENTS[name]
    source = case.make.for_env(make_env(case.pair), seed=0)
    unbound = case.make(**networks_of(source))
    config = unbound.get_config()
    assert config["observation_space"] is None
    again = case.make.from_config(config)
    again.compile(run_eagerly=True)
    again.fit(case.make_dataset(make_env(case.pair)), verbose=0)
    assert again.env_steps == case.env_steps(1)


@pytest.mark.rotate(name=ANY)
@pytest.mark.parametrize(
    ("name", "action"),
    [(name, action) for name in AGENTS for action in AGENTS[name].actions],
)
def test_for_env_takes_an_id_or_any_environment(name, action):
    env = make_env(f"act_{action}")
    for given in (env, env.env):
        agent = AGENTS[name].make.for_env(given, hidden=(4,), seed=0)
        assert agent.action_space == env.action_space
        assert agent.compiled


@pytest.mark.rotate(name=ANY)
@over_agents
def test_seed_of_act_repeats(name):
    env = make_env(AGENTS[name].pair)
    drawn = [
        make_agent(AGENTS[name], env, seed=seed).act(np.zeros((64, 3)))
        for seed in (5, 5, 6)
    ]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert (drawn[0] != drawn[2]).any()


@pytest.mark.rotate(name=ANY)
@over_agents
def test_greedy_actions_leave_the_samples_as_they_were(name):
    env, batch = make_env(AGENTS[name].pair), np.zeros((64, 3))
    one, two = (make_agent(AGENTS[name], env, seed=5) for _ in range(2))
    one.act(batch, deterministic=True)
    np.testing.assert_array_equal(one.act(batch), two.act(batch))


@pytest.mark.rotate(name=ANY)
@over_agents
def test_nothing_keeps_an_agent_that_nobody_has(name):
    """Not even TensorFlow, which keeps every generator of a dataset."""
    case, env = AGENTS[name], make_env(AGENTS[name].pair)
    make = make_agent if case.on_policy else make_eager_agent
    agent = make(case, env)
    agent.fit(
        case.make_dataset(env),
        validation_data=rl.EvaluationDataset(env, 2),
        verbose=0,
    )
    agent.act(observations(agent))
    gone = weakref.ref(agent)
    del agent
    gc.collect()
    assert gone() is None


@pytest.mark.rotate(name=ANY)
@over_agents
def test_plain_dataset_after_rollouts(name):
    """`fit` on minibatches works on an agent that was fitted on rounds."""
    case, env = AGENTS[name], make_env(AGENTS[name].pair)
    agent = make_agent(case, env)
    dataset = case.make_dataset(env)
    agent.fit(dataset, verbose=0)
    batches = dataset.as_dataset(agent)
    history = agent.fit(
        batches,
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
