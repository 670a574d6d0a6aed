"""A preset checks its settings, changes them, and is plain data."""

import json
import re

import keras
import pytest

import keras_rl2 as rl
from keras_rl2 import presets
from keras_rl2.training.from_preset import check_names

SCHEDULE = {"schedule": "linear", "initial": 0.2, "final": 0.0}


def ppo(**fields):
    return presets.Preset("PPO", "CartPole-v1", 100_000, **fields)


def refusal(call, *args, **kwargs):
    """Returns what a call is refused with, nothing where it is not."""
    try:
        call(*args, **kwargs)
    except ValueError as error:
        return str(error)
    return ""


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


# Default presets are what the classes do by themselves.


def test_default_optimizers_are_those_of_the_agents():
    for name, known in presets.ALGORITHMS.items():
        settings = dict(presets.default(name, "Any-v0").optimizer)
        made = getattr(keras.optimizers, settings.pop("name"))(**settings)
        kinds = known.actions or ("Discrete",)
        env = "CartPole-v1" if "Discrete" in kinds else "Pendulum-v1"
        agent = getattr(rl, name).for_env(env, hidden=(4,), seed=0)
        expected = keras.optimizers.Adam(**agent.default_adam)
        assert type(made) is type(expected), name
        assert made.get_config() | {"name": ""} == (
            expected.get_config() | {"name": ""}
        ), name


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
    same = preset.with_settings({"optimizer.name": preset.optimizer["name"]})
    assert same == preset


def test_a_preset_copies_its_arguments():
    hidden, settings = [64], {"gamma": 0.9}
    preset = ppo(networks={"hidden": hidden}, agent=settings)
    hidden.append(32)
    settings["gamma"] = 1.0
    preset.to_dict()["agent"]["gamma"] = 2.0
    assert preset.networks == {"hidden": [64]}
    assert preset.agent == {"gamma": 0.9}


def test_a_preset_passes_through_json():
    preset = ppo(networks={"hidden": (64, 32)}, agent={"clip_ratio": SCHEDULE})
    data = json.loads(json.dumps(preset.to_dict()))
    assert presets.Preset.from_dict(data) == preset
    assert preset.networks["hidden"] == [64, 32]


# Recorded data.


def test_steps_and_updates_exclude_each_other():
    for algorithm, fields, message in (
        ("CQL", {}, "Expected either `total_steps`"),
        ("CQL", {"total_steps": 5, "updates": 5}, "Expected either"),
        ("CQL", {"updates": -1}, "Expected either"),
        ("PPO", {"updates": 5}, "from which no on-policy"),
    ):
        said = refusal(presets.Preset, algorithm, "CartPole-v1", **fields)
        assert message in said, fields


def test_a_preset_for_recorded_data_has_no_steps():
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
    with pytest.raises(ValueError, match="from which no on-policy"):
        presets.on_recorded_data(ppo())


# What is refused.


def test_an_unknown_setting_names_the_nearest():
    for key, near in (
        ("gamma", "agent.gamma"),
        ("learning_rate", "optimizer.learning_rate"),
        ("totalsteps", "total_steps"),
        ("env", "num_envs"),
    ):
        said = refusal(ppo().with_settings, {key: 1})
        assert near in said, key
        assert f"Received: {key!r}" in said, key


@pytest.mark.parametrize(
    ("algorithm", "key", "near"),
    [
        ("PPO", "agent.gama", "agent.gamma"),
        ("PPO", "agent.hidden", "networks.hidden"),
        # Arguments that are not the preset's.
        ("PPO", "agent.actor", "agent.clip_ratio"),
        ("PPO", "agent.seed", "one of|perhaps"),
        ("PPO", "dataset.env", "dataset.horizon"),
        # Settings of another algorithm or of another dataset.
        ("PPO", "agent.tau", "agent.gae_lambda"),
        ("PPO", "dataset.capacity", "dataset.passes"),
        ("DQN", "dataset.horizn", "dataset.capacity"),
        ("CQL", "dataset.warm_up", "dataset.updates_per_epoch"),
        ("PPO", "networks.hiden", "networks.hidden"),
        ("PPO", "optimizer.learning_rat", "optimizer.learning_rate"),
        # Near to nothing: all of the section.
        ("PPO", "optimizer.lr", "optimizer.weight_decay"),
    ],
)
def test_an_agent_is_made_of_no_unknown_setting(algorithm, key, near):
    length = {"updates": 5} if algorithm == "CQL" else {"total_steps": 5}
    preset = presets.Preset(algorithm, "Nowhere-v0", **length)
    preset = preset.with_settings({"optimizer.name": "Adam", key: 1})
    said = refusal(getattr(rl, algorithm).from_preset, preset)
    assert re.match(f"Expected a setting of {algorithm}, .*({near})", said)
    assert f"Received: {key!r}" in said


@pytest.mark.parametrize(
    ("optimizer", "reason"),
    [
        ({"name": "Adm"}, "perhaps 'Adam'"),
        ({"name": "get"}, "Received: 'get'"),
        ({"learning_rate": 1e-3}, "Received: 'None'"),
    ],
)
def test_an_agent_is_made_of_no_unknown_optimizer(optimizer, reason):
    said = refusal(rl.PPO.from_preset, ppo(optimizer=optimizer))
    assert said.startswith("Expected an `optimizer.name` of Keras")
    assert reason in said


def test_an_argument_of_a_subclass_is_a_setting():
    class Mine(rl.PPO):
        """Takes one more."""

        def __init__(self, *args, extra=0, **kwargs):
            super().__init__(*args, **kwargs)

    check_names(Mine, ppo(agent={"extra": 1}))
    with pytest.raises(ValueError, match="Received: 'agent"):
        check_names(rl.PPO, ppo(agent={"extra": 1}))


def test_a_value_of_a_wrong_type_is_refused():
    preset = ppo(optimizer={"name": "Adam"})
    for key, value in (
        ("total_steps", 0),
        ("total_steps", 1e5),
        ("total_steps", True),
        ("num_envs", "8"),
        ("algorithm", "ppo"),
        ("networks", 64),
    ):
        said = refusal(preset.with_settings, {key: value})
        assert re.search(r"Expected .* Received: ", said), (key, value)


def test_a_value_that_an_agent_refuses():
    preset = ppo(networks={"hidden": [4]})
    for key, value in (
        ("agent.gamma", "0.9"),
        ("agent.gamma", float("nan")),
        ("agent.gamma", SCHEDULE),
        ("agent.normalize_advantages", 1),
        ("agent.clip_ratio", {**SCHEDULE, "schedule": "cosine"}),
        ("agent.clip_ratio", {**SCHEDULE, "fractoin": 0.5}),
        ("agent.clip_ratio", {"schedule": "linear", "initial": 0.2}),
    ):
        changed = preset.with_settings({key: value})
        said = refusal(rl.PPO.from_preset, changed)
        assert key.removeprefix("agent.") in said, (key, value)


def test_values_of_the_right_type_are_taken():
    noise = {"class_name": "ornstein_uhlenbeck", "config": {"scale": 0.5}}
    for algorithm, key, values in (
        ("PPO", "agent.clip_ratio", (SCHEDULE, {**SCHEDULE, "fraction": 0.5})),
        ("PPO", "agent.value_clip_range", (None,)),
        ("PPO", "agent.gamma", (1,)),
        ("PPO", "dataset.batch_size", ("auto", None)),
        ("PPO", "networks.hidden", ([],)),
        ("TD3", "agent.exploration", (None, 0.1, "gaussian", noise, SCHEDULE)),
    ):
        preset = presets.Preset(algorithm, "Any-v0", 1000)
        section, name = key.split(".")
        for value in values:
            changed = preset.with_settings({key: value})
            assert getattr(changed, section) == {name: value}


def test_missing_and_unknown_fields_are_refused():
    data = ppo().to_dict()
    with pytest.raises(ValueError, match=r"'total_steps'.*'total_step'"):
        presets.Preset.from_dict({**data, "total_step": 1})
    del data["environment"]
    with pytest.raises(TypeError, match="'environment'"):
        presets.Preset.from_dict(data)
