"""A preset checks its settings, changes them, and is plain data."""

import dataclasses
import inspect
import json

import keras
import pytest

import keras_rl2 as rl
from keras_rl2 import presets
from keras_rl2.presets.schema import settings_of
from support.processes import printed_by

SCHEDULE = {"schedule": "linear", "initial": 0.2, "final": 0.0}
OPTIMIZERS = ("Adam", "AdamW", "Nadam", "RMSprop", "SGD")


def ppo(**fields):
    return presets.Preset("PPO", "CartPole-v1", 100_000, **fields)


def test_arguments_of_the_environment_are_a_field_where_there_are_any():
    assert "env_kwargs" not in ppo().to_dict()
    kwargs = {"gravity": 9.0, "means": (1, 2)}
    preset = ppo(env_kwargs=kwargs)
    kwargs["gravity"] = 0.0
    data = json.loads(json.dumps(preset.to_dict()))
    assert data["env_kwargs"] == {"gravity": 9.0, "means": [1, 2]}
    assert presets.Preset.from_dict(data) == preset
    with pytest.raises(ValueError, match=r"`env_kwargs` to be a dict.*\[3\]"):
        ppo(env_kwargs=[3])


# The schema is that of the constructors.


def arguments_of(make, stop=object):
    """Names that a constructor takes, and those it passes on to its bases."""
    names = set()
    for kind in make.__mro__:
        if kind is stop:
            break
        if "__init__" in vars(kind):
            parameters = inspect.signature(kind.__init__).parameters.values()
            names |= {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
    return names - {"self", "args"}


def section_of(section, algorithm, optimizer="Adam"):
    start = f"{section}."
    keys = settings_of(algorithm, optimizer)
    return {key.removeprefix(start) for key in keys if key.startswith(start)}


@pytest.mark.parametrize("algorithm", presets.ALGORITHMS)
def test_agent_settings_are_the_constructors_arguments(algorithm):
    taken = set(getattr(rl, algorithm).argument_names())
    taken -= {"actor", "critic", "q_network", "value_network"}
    # What a preset says elsewhere, or not at all.
    taken -= {"observation_space", "action_space", "seed", "name", "dtype"}
    assert section_of("agent", algorithm) == taken


@pytest.mark.parametrize("algorithm", presets.ALGORITHMS)
def test_network_settings_are_arguments_of_for_env(algorithm):
    taken = inspect.signature(getattr(rl, algorithm).for_env).parameters
    assert section_of("networks", algorithm) <= set(taken)


@pytest.mark.parametrize("algorithm", presets.ALGORITHMS)
def test_dataset_settings_are_the_constructors_arguments(algorithm):
    on_policy = getattr(rl, algorithm).on_policy
    assert presets.ALGORITHMS[algorithm].on_policy is on_policy
    make = rl.RolloutDataset if on_policy else rl.ReplayDataset
    taken = set(inspect.signature(make).parameters)
    assert section_of("dataset", algorithm) == taken - {
        "env",
        "env_kwargs",
        "num_envs",
        "seed",
        # Of environments in processes, which no preset makes.
        "step_timeout",
        "workers",
        "rounds_ahead",
        "wrappers",
    }


def test_settings_of_recorded_data_are_the_constructors_arguments():
    known = settings_of("CQL", offline=True)
    start = "dataset."
    ours = {k.removeprefix(start) for k in known if k.startswith(start)}
    taken = set(inspect.signature(rl.OfflineDataset).parameters)
    assert ours == taken - {
        *("source", "seed", "observation_space", "action_space")
    }


@pytest.mark.parametrize("algorithm", presets.ALGORITHMS)
def test_what_is_made_for_recorded_data_is_not_on_policy(algorithm):
    known = presets.ALGORITHMS[algorithm]
    assert not (known.offline and known.on_policy)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_settings_are_arguments_of_keras(name):
    taken = inspect.signature(getattr(keras.optimizers, name)).parameters
    assert section_of("optimizer", "DQN", name) <= set(taken)


def test_targets_are_settings_of_agents_that_have_them():
    assert {"tau", "target_every"} <= section_of("agent", "SAC")
    assert not {"tau", "target_every"} & section_of("agent", "PPO")


# Default presets are what the classes do by themselves.


@pytest.mark.parametrize("algorithm", presets.ALGORITHMS)
def test_default_optimizers_are_those_of_the_agents(algorithm):
    settings = dict(presets.default(algorithm, "Any-v0").optimizer)
    made = getattr(keras.optimizers, settings.pop("name"))(**settings)
    kinds = presets.ALGORITHMS[algorithm].actions or ("Discrete",)
    env = "CartPole-v1" if "Discrete" in kinds else "Pendulum-v1"
    agent = getattr(rl, algorithm).for_env(env, hidden=(4,), seed=0)
    expected = agent.default_optimizer()
    assert type(made) is type(expected)
    assert made.get_config() | {"name": ""} == (
        expected.get_config() | {"name": ""}
    )


# Settings are changed in a copy.


def test_settings_are_changed_in_a_copy():
    before = ppo(agent={"gamma": 0.98, "gae_lambda": 0.8})
    after = before.with_settings(
        {
            "agent.gamma": 0.9,
            "optimizer": {"name": "Adam"},
            "optimizer.learning_rate": 1e-4,
            "total_steps": 5000,
        }
    )
    assert after.agent == {"gamma": 0.9, "gae_lambda": 0.8}
    assert after.optimizer == {"name": "Adam", "learning_rate": 1e-4}
    assert after.total_steps == 5000
    assert before == ppo(agent={"gamma": 0.98, "gae_lambda": 0.8})


def test_another_optimizer_drops_what_it_has_not_got():
    preset = presets.find("PPO", "CartPole-v1")
    changed = preset.with_settings(
        {"optimizer.name": "SGD", "optimizer.momentum": 0.9}
    )
    assert changed.optimizer == {
        "name": "SGD",
        "learning_rate": preset.optimizer["learning_rate"],
        "momentum": 0.9,
    }


@pytest.mark.parametrize(
    ("sync", "expected"),
    [
        (None, {}),
        ({"every": 300}, {"tau": 1.0, "target_every": 300}),
        ({"tau": 0.02}, {"tau": 0.02, "target_every": 1}),
    ],
)
def test_a_preset_of_0_1_0_says_elsewhere_how_targets_follow(sync, expected):
    data = presets.Preset("SAC", "Pendulum-v1", 1000).to_dict()
    old = presets.Preset.from_dict({**data, "target_sync": sync})
    assert old.agent == expected


def test_what_a_preset_was_given_may_be_changed_later():
    hidden, settings = [64], {"gamma": 0.9}
    preset = ppo(networks={"hidden": hidden}, agent=settings)
    hidden.append(32)
    settings["gamma"] = 1.0
    preset.to_dict()["agent"]["gamma"] = 2.0
    assert preset.networks == {"hidden": [64]}
    assert preset.agent == {"gamma": 0.9}


def test_fields_cannot_be_assigned():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ppo().total_steps = 5


def test_a_preset_passes_through_json():
    preset = ppo(networks={"hidden": (64, 32)}, agent={"clip_ratio": SCHEDULE})
    data = json.loads(json.dumps(preset.to_dict()))
    assert presets.Preset.from_dict(data) == preset
    assert preset.networks["hidden"] == [64, 32]


# Recorded data.


def test_a_preset_of_updates_says_nothing_of_steps():
    preset = presets.Preset("CQL", "CartPole-v1", updates=50)
    data = preset.to_dict()
    assert data["updates"] == 50
    assert "total_steps" not in data
    assert "updates" not in ppo().to_dict()
    assert presets.Preset.from_dict(json.loads(json.dumps(data))) == preset


@pytest.mark.parametrize(
    ("algorithm", "fields", "message"),
    [
        ("CQL", {}, "Expected either `total_steps`"),
        ("CQL", {"total_steps": 5, "updates": 5}, "Expected either"),
        ("CQL", {"updates": -1}, "Expected either"),
        ("CQL", {"updates": 5, "dataset": {"warm_up": 1}}, r"dataset\.warm_up"),
        ("CQL", {"total_steps": 5, "dataset": {"best": 0.1}}, r"dataset\.best"),
        ("PPO", {"updates": 5}, "`total_steps` of PPO"),
    ],
)
def test_steps_and_updates_exclude_each_other(algorithm, fields, message):
    with pytest.raises(ValueError, match=message):
        presets.Preset(algorithm, "CartPole-v1", **fields)


def test_on_recorded_data_what_counts_steps_goes():
    preset = presets.find("DQN", "CartPole-v1")
    changed = presets.on_recorded_data(preset)
    assert changed.agent == {
        k: v for k, v in preset.agent.items() if k != "epsilon"
    }
    assert changed.dataset == {"batch_size": 64}
    assert (changed.networks, changed.optimizer) == (
        preset.networks,
        preset.optimizer,
    )
    assert (changed.total_steps, changed.num_envs) == (0, 1)
    assert changed.updates == 100_000
    assert presets.on_recorded_data(changed) is changed
    with pytest.raises(ValueError, match="does not learn from recorded data"):
        presets.on_recorded_data(ppo())


# What is refused.


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("agent.gama", "agent.gamma"),
        ("gamma", "agent.gamma"),
        ("optimizer.learning_rat", "optimizer.learning_rate"),
        ("learning_rate", "optimizer.learning_rate"),
        ("dataset.horizn", "dataset.horizon"),
        ("totalsteps", "total_steps"),
        ("env", "num_envs"),
        # Of another algorithm, and near to nothing: all of the section.
        ("optimizer.lr", "optimizer.weight_decay"),
    ],
)
def test_an_unknown_setting_names_the_nearest(key, near):
    with pytest.raises(ValueError, match=near) as error:
        ppo().with_settings({key: 1})
    assert f"Received: {key!r}" in str(error.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("total_steps", 0),
        ("total_steps", 1e5),
        ("total_steps", True),
        ("num_envs", "8"),
        ("laptop", 1),
        ("notes", None),
        ("algorithm", "ppo"),
        ("networks", None),
        ("networks.hidden", 64),
        ("networks.hidden", [64, 32.5]),
        ("networks.normalize_observations", "yes"),
        ("agent", [0.9]),
        ("agent.gamma", "0.9"),
        ("agent.gamma", None),
        ("agent.gamma", float("nan")),
        ("agent.gamma", SCHEDULE),
        ("agent.normalize_advantages", 1),
        ("agent.clip_ratio", {**SCHEDULE, "schedule": "cosine"}),
        ("agent.clip_ratio", {**SCHEDULE, "fraction": 0.0}),
        ("agent.clip_ratio", {**SCHEDULE, "fraction": 1.1}),
        ("agent.clip_ratio", {**SCHEDULE, "steps": 10}),
        ("agent.clip_ratio", {"schedule": "linear", "initial": 0.2}),
        ("optimizer", {"learning_rate": 1e-3}),
        ("optimizer.name", "Adm"),
        ("optimizer.name", ["Adam"]),
        ("dataset.batch_size", "all"),
        ("agent", {"tau": 0.1}),
    ],
)
def test_a_value_of_a_wrong_type_is_refused(key, value):
    preset = ppo(optimizer={"name": "Adam"})
    with pytest.raises(ValueError, match=r"Expected .* Received: "):
        preset.with_settings({key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("agent.clip_ratio", SCHEDULE),
        ("agent.clip_ratio", {**SCHEDULE, "fraction": 0.5}),
        ("agent.value_clip_range", None),
        ("agent.gamma", 1),
        ("dataset.batch_size", "auto"),
        ("dataset.batch_size", None),
        ("networks.hidden", []),
    ],
)
def test_values_of_the_right_type_are_taken(key, value):
    section, name = key.split(".")
    changed = ppo().with_settings({key: value})
    assert getattr(changed, section) == {name: value}


@pytest.mark.parametrize(
    "noise",
    [
        None,
        0.1,
        "gaussian",
        {"class_name": "ornstein_uhlenbeck", "config": {"scale": 0.5}},
        {"schedule": "linear", "initial": 0.5, "final": 0.1},
    ],
)
def test_exploration_is_noise_in_any_form(noise):
    preset = presets.Preset("TD3", "Pendulum-v1", 1000)
    changed = preset.with_settings({"agent.exploration": noise})
    assert changed.agent["exploration"] == noise
    with pytest.raises(ValueError, match=r"agent\.exploration"):
        preset.with_settings({"agent.exploration": {"scale": 0.1}})


def test_missing_and_unknown_fields_are_refused():
    data = ppo().to_dict()
    with pytest.raises(ValueError, match=r"'total_steps'.*'total_step'"):
        presets.Preset.from_dict({**data, "total_step": 1})
    del data["environment"]
    with pytest.raises(ValueError, match="with environment"):
        presets.Preset.from_dict(data)


# Importing them costs next to nothing.


def test_importing_presets_imports_the_standard_library_only(tmp_path):
    code = (
        "import sys, keras_rl2.presets as p; p.available();"
        "print([m for m in ('tensorflow', 'keras', 'numpy', 'gymnasium')"
        " if m in sys.modules])"
    )
    assert printed_by(code, tmp_path) == "[]"
