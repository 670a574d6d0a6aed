"""The presets that are shipped: found by name, and taken by the classes."""

import json
from pathlib import Path

import gymnasium
import keras
import pytest

import keras_rl2 as rl
from keras_rl2 import presets
from keras_rl2.presets.preset import file_name

FILES = sorted((Path(presets.__file__).parent / "data").glob("*.json"))
DISCRETE = ("Acrobot-v1", "CartPole-v1", "LunarLander-v3", "MountainCar-v0")
CONTINUOUS = (
    "Ant-v5",
    "BipedalWalker-v3",
    "HalfCheetah-v5",
    "Hopper-v5",
    "LunarLanderContinuous-v3",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "Walker2d-v5",
)
# Pictures, for longer than a laptop lasts.
GAMES = ("ALE/Breakout-v5", "ALE/Pong-v5")


# Packages of environments that may not be installed.
MISSING = (
    gymnasium.error.DependencyNotInstalled,
    gymnasium.error.NamespaceNotFound,
    ImportError,
)


def test_each_algorithm_has_a_preset_for_each_task_that_it_applies_to():
    pairs = {(p.algorithm, p.environment) for p in presets.available()}
    wanted = {("DQN", env) for env in DISCRETE}
    wanted |= {("BehaviorCloning", "CartPole-v1"), ("CQL", "CartPole-v1")}
    wanted |= {("IQL", "Pendulum-v1"), ("TD3BC", "Pendulum-v1")}
    for algorithm in ("SAC", "TD3", "TQC"):
        wanted |= {(algorithm, env) for env in CONTINUOUS}
    for algorithm in ("A2C", "PPO"):
        wanted |= {(algorithm, env) for env in (*DISCRETE, *CONTINUOUS)}
    for algorithm in ("A2C", "DQN", "PPO"):
        wanted |= {(algorithm, env) for env in GAMES}
    assert pairs == wanted


def test_presets_are_sorted_by_environment_and_algorithm():
    pairs = [(p.environment, p.algorithm) for p in presets.available()]
    assert pairs == sorted(pairs)
    assert len(pairs) == len(FILES)
    pendulum = presets.available("Pendulum-v1")
    assert [p.algorithm for p in pendulum] == [
        *("A2C", "IQL", "PPO", "SAC", "TD3", "TD3BC", "TQC")
    ]
    assert presets.available("Nowhere-v0") == []


def test_a_preset_file_is_complete_and_is_found_by_its_name():
    for path in FILES:
        data = json.loads(path.read_text(encoding="utf-8"))
        preset = presets.Preset.from_dict(data)
        # No field left to a default.
        assert preset.to_dict() == data, path
        assert file_name(preset.algorithm, preset.environment) == path.name
        name = preset.algorithm.lower()
        assert presets.find(name, preset.environment) == preset, path
        assert preset.source, path


@pytest.mark.parametrize(
    "all_of_them", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_presets_are_taken_by_the_classes(all_of_them, tmp_path):
    made = 0
    for preset in presets.available():
        if not all_of_them and preset.environment != "CartPole-v1":
            continue
        data = tmp_path / preset.algorithm if preset.updates else None
        if data:
            rl.record("random", preset.environment, 300, data)
        try:
            training = rl.Training.from_preset(preset, seed=0, data=data)
        except MISSING:
            continue
        check(training, preset)
        made += 1
    assert made >= (20 if all_of_them else 5)


def check(training, preset):
    """Compares made objects with the settings of the preset."""
    agent, dataset = training.agent, training.dataset
    # Made for as many environments: nothing had to be fitted.
    assert training.preset == preset
    # Also fails if agent and environment do not go together.
    spaces = dataset if preset.updates else dataset.env
    agent.bind(spaces.observation_space, spaces.action_space)
    for name, value in preset.dataset.items():
        given = value is not None and value != "auto"
        assert not given or getattr(dataset, name) == value, (preset, name)
    numbers = (int, float, str, bool)
    for name, value in preset.agent.items():
        if isinstance(value, numbers) and name != "exploration":
            attribute = agent.argument_attributes.get(name, name)
            assert getattr(agent, attribute) == value, (preset, name)
    optimizer = agent.compile_arguments.optimizer
    assert type(optimizer).__name__ == preset.optimizer["name"]
    rate = preset.optimizer["learning_rate"]
    first = rate["initial"] if isinstance(rate, dict) else rate
    assert float(optimizer.learning_rate.numpy()) == pytest.approx(first)
    widths = [  # Of a shared network, both outputs come last.
        layer.units
        for layer in agent.layers[0].layers
        if isinstance(layer, keras.layers.Dense)
    ]
    # Those of the published network of pictures, where nothing is said.
    hidden = preset.networks.get("hidden", [512])
    assert widths[: len(hidden)] == hidden, preset


def test_settings_are_those_published():
    """A few by hand, from the settings of RL Baselines3 Zoo."""
    lander = presets.find("PPO", "LunarLander-v3")
    assert (lander.total_steps, lander.num_envs) == (1_000_000, 16)
    assert lander.dataset["horizon"] == 1024
    assert lander.agent["gae_lambda"] == 0.98
    cheetah = presets.find("PPO", "HalfCheetah-v5")
    # Published as `ortho_init=False`.
    assert cheetah.networks["initialization"] == "fan_in"
    assert cheetah.agent["initial_log_std"] == -2.0
    # 16 steps, then 8 updates; 600 steps from one copy to the next.
    car = presets.find("DQN", "MountainCar-v0")
    assert car.dataset["steps_per_round"] == 16
    assert car.dataset["updates_per_round"] == 8
    assert (car.agent["tau"], car.agent["target_every"]) == (1.0, 300)


def test_unknown_names_raise_with_the_nearest():
    for algorithm, environment, said in (
        ("PPO", "CartPole-v0", "perhaps 'CartPole-v1'"),
        ("DQN", "Pendulum-v1", "Pendulum-v1 there are A2C, IQL"),
        ("DDPG", "Pendulum-v1", r"with presets, one of A2C, .*CQL, DQN"),
        ("PPPO", "CartPole-v1", r"PPO, .*REINFORCE.*'PPPO'"),
    ):
        with pytest.raises(ValueError, match=said):
            presets.find(algorithm, environment)
    with pytest.raises(ValueError, match=r"PPO, .*REINFORCE.*'PPPO'"):
        presets.default("PPPO", "CartPole-v1")
