"""Agents from presets."""

import pytest

import keras_rl2 as rl
from support.agents import assert_equal_weights


def test_from_preset_makes_the_agent_of_the_training():
    preset = rl.presets.find("PPO", "CartPole-v1")
    agent = rl.PPO.from_preset("CartPole-v1", seed=3)
    other = rl.Training.from_preset(preset, seed=3).agent
    assert agent.gae_lambda == other.gae_lambda == preset.agent["gae_lambda"]
    ours, theirs = (x.optimizer.get_config() for x in (agent, other))
    assert {**ours, "name": ""} == {**theirs, "name": ""}
    assert_equal_weights(agent, other)


def test_settings_of_a_preset_may_be_changed():
    preset = rl.presets.find("SAC", "Pendulum-v1")
    assert rl.SAC.from_preset(preset).tau == preset.agent["tau"]
    preset = preset.with_settings({"agent.gamma": 0.5, "networks.hidden": [8]})
    agent = rl.SAC.from_preset(preset)
    assert agent.gamma == 0.5
    assert agent.actor.layers[-1].input.shape == (None, 8)


def test_schedules_last_as_long_as_training_on_so_many_environments():
    rates = [
        rl.PPO.from_preset("CartPole-v1", num_envs=count).optimizer
        for count in (8, 16)
    ]
    # 391 rounds of 20 passes; half as many with one more for the rest.
    steps = [
        rate.get_config()["learning_rate"]["config"]["decay_steps"]
        for rate in rates
    ]
    assert steps == [391 * 20 * 1, 196 * 20 * 2]


def test_a_subclass_has_the_presets_of_its_algorithm():
    class Mine(rl.PPO):
        """Nothing is different."""

    assert type(Mine.from_preset("CartPole-v1")) is Mine


def test_presets_of_other_algorithms_are_refused():
    other = rl.presets.find("DQN", "CartPole-v1")
    for kind, given, message in (
        (rl.PPO, other, "preset for PPO"),
        (rl.PPO, "CartPole-v2", "perhaps 'CartPole-v1'"),
        (rl.DQN, "Pendulum-v1", "preset of DQN"),
        (rl.REINFORCE, "CartPole-v1", "an algorithm with presets"),
    ):
        with pytest.raises(ValueError, match=message):
            kind.from_preset(given)
