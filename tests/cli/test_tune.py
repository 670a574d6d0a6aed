"""`keras-rl2 tune`: its first trial, resuming, and the best preset."""

import re

import pytest

from keras_rl2 import presets
from keras_rl2.cli import tune as tuning
from keras_rl2.cli.main import main

optuna = pytest.importorskip("optuna")

ONE_RATE = [
    "--search",
    'optimizer.learning_rate={"low":0.0001,"high":0.01}',
    *(f"{name}=null" for name in [*presets.ALGORITHMS["PPO"].search][1:]),
]


def tune(*options, algorithm="ppo", env="CartPole-v1"):
    return main(["tune", algorithm, env, *map(str, options)])


def study():
    return optuna.load_study(
        study_name="PPO-CartPole-v1", storage="sqlite:///tuning.db"
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def trained(monkeypatch):
    """The presets of trials, which are worth their learning rates."""
    found = []

    def train(trial, preset, seeds):
        found.append(preset)
        rate = preset.optimizer["learning_rate"]
        return rate["initial"] if isinstance(rate, dict) else rate

    monkeypatch.setattr(tuning, "_train", train)
    return found


def test_the_preset_is_the_first_trial(trained, capsys):
    assert tune("--trials", 3, "--set", "agent.gamma=0.9", "--envs", 2) == 0
    lines = re.findall(r"trial \d: .*, \d of 3, .*", capsys.readouterr().out)
    assert [line.split(", ")[1] for line in lines] == [
        *("1 of 3", "2 of 3", "3 of 3")
    ]
    assert lines[-1].endswith(", 0:00:00 left")
    shipped = presets.find("PPO", "CartPole-v1")
    assert trained[0] == shipped.with_settings(
        {"agent.gamma": 0.9, "num_envs": 2}
    )
    assert len(trained) == 3
    first, second, _ = study().trials
    assert first.params == {}
    assert set(second.params) == (
        {*presets.SearchSpace("PPO").ranges} - {"agent.gamma"}
    )
    assert all(each.agent["gamma"] == 0.9 for each in trained)
    best = presets.read("PPO-CartPole-v1.json")
    assert best.agent == trained[study().best_trial.number].agent


def test_defaults_are_the_first_trial_of_a_search_without_them(trained):
    assert tune("--trials", 2, "--preset", "default") == 0
    assert trained[0] == presets.default("PPO", "CartPole-v1")


def test_a_study_is_resumed_and_draws_as_if_it_had_not_ended(
    trained, tmp_path, monkeypatch, capsys
):
    assert tune("--trials", 2, *ONE_RATE) == 0
    assert tune("--trials", 4, *ONE_RATE) == 0
    (tmp_path / "whole").mkdir()
    monkeypatch.chdir(tmp_path / "whole")
    assert tune("--trials", 4, *ONE_RATE) == 0
    assert trained[:4] == trained[4:]
    assert tune("--trials", 5, *ONE_RATE, "--seeds", 3) == 2
    assert "trials of PPO-CartPole-v1 with other" in capsys.readouterr().err
    assert len(trained) == 8


def test_an_interrupted_search_writes_the_best_so_far(trained, monkeypatch):
    assert tune("--trials", 2, *ONE_RATE) == 0

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "_train", interrupt)
    assert tune("--trials", 3, *ONE_RATE) == 130
    assert presets.read("PPO-CartPole-v1.json").notes.startswith("Other seeds")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--search", "agent.gama=[0,1]"], "agent.gamma"),
        (["--set", "agent.gama=1"], "agent.gamma"),
        (["--trials", "0"], "at least 1"),
    ],
)
def test_wrong_options_are_refused(options, said, capsys):
    assert tune(*options) == 2
    assert said in capsys.readouterr().err


def test_recorded_data_is_refused(capsys):
    assert tune(algorithm="cql") == 2
    assert "recorded data" in capsys.readouterr().err


@pytest.mark.slow
def test_trials_are_trained_and_pruned(monkeypatch):
    options = ["--trials", 2, "--steps", 640, "--seeds", 2]
    options += ["--set", "networks.hidden=[8]", "dataset.horizon=32"]
    options += ["--envs", 2, *ONE_RATE]
    assert tune(*options) == 0
    for trial in study().trials:
        assert list(trial.intermediate_values) == [*range(64, 641, 64)]
        assert trial.value == trial.intermediate_values[640]
    assert (
        main(
            ["train", "ppo", "CartPole-v1", "--preset", "PPO-CartPole-v1.json"]
        )
        == 0
    )
    monkeypatch.setattr(optuna.Trial, "should_prune", lambda self: True)
    assert tune("--trials", 3, *options[2:]) == 0
    assert study().trials[2].state.name == "PRUNED"
