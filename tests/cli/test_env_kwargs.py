"""Arguments of environments, typed once and known to all that follows."""

import argparse
import json

import pytest

from keras_rl2.cli.main import main
from keras_rl2.cli.run_folder import RunFolder

# A reward of 0 for each step, and -1 for the one in which the pole falls.
SUTTON = ["--env-kwargs", "sutton_barto_reward=true"]
# Evaluations than the one at the end.
NO_MORE = ["--evaluate", "0"]


@pytest.fixture(scope="module")
def folder(train_eagerly, tmp_path_factory):
    logdir = tmp_path_factory.mktemp("runs")
    command = ["train", "reinforce", "CartPole-v1", "--logdir", logdir]
    options = ["--steps", "300", "--set", "networks.hidden=[8]"]
    options += ["dataset.horizon=200"]
    train_eagerly(*command, *options, *NO_MORE, *SUTTON)
    return logdir / "REINFORCE-CartPole-v1" / "seed-0"


def test_env_kwargs_are_stored(folder):
    preset = json.loads((folder / "preset.json").read_text())
    assert preset["env_kwargs"] == {"sutton_barto_reward": True}
    score = json.loads((folder / "best.json").read_text())
    assert -1.0 <= score["episode_return"] <= 0.0


def test_evaluate_and_record_know_them(folder, tmp_path, capsys):
    assert main(["evaluate", str(folder), "--episodes", "5"]) == 0
    assert "return -1.0 +- 0.0" in capsys.readouterr().out
    video = str(tmp_path / "video.gif")
    assert main(["record", str(folder), "--output", video]) == 0
    assert capsys.readouterr().out.endswith("return -1.0\n")


def test_a_run_folder_merges_env_kwargs_of_preset_and_command(tmp_path):
    folder = RunFolder(tmp_path)

    def found(env=None, **env_kwargs):
        arguments = argparse.Namespace(
            env=env, env_kwargs=[*env_kwargs.items()]
        )
        return folder.environment(arguments)

    preset = {"environment": "A-v0", "env_kwargs": {"a": 1, "b": 2}}
    folder.preset.write_text(json.dumps(preset))
    assert found() == ("A-v0", {"a": 1, "b": 2})
    assert found("A-v0", b=3) == ("A-v0", {"a": 1, "b": 3})
    assert found("B-v0", c=4) == ("B-v0", {"c": 4})
    folder.preset.write_text(json.dumps({"environment": "A-v0"}))
    assert found() == ("A-v0", {})


def test_a_resumed_training_refuses_other_env_kwargs(folder, refused):
    logdir = ["--logdir", folder.parents[1]]
    command = ["train", "reinforce", "CartPole-v1", "--resume", *logdir]
    line = refused(*command, *SUTTON)
    assert "--env-kwargs does not go with --resume" in line


def test_doctor_applies_the_env_kwargs(capsys):
    assert main(["doctor", "CartPole-v1", *SUTTON]) == 0
    rewards = capsys.readouterr().out
    assert " -1 to -0, " in rewards
