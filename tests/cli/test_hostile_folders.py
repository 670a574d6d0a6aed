"""The folder of somebody else's training runs nothing that it names."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from keras_rl2.cli.main import main
from support.watching import watched

_MEBIBYTES = 1024
PPO = {"algorithm": "PPO", "environment": "CartPole-v1", "total_steps": 100}


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A module in the working directory, which says when it is imported."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    (folder / "canary_env.py").write_text(
        "import gymnasium\n"
        "open('canary', 'w').close()\n"
        "gymnasium.register('Canary-v0', entry_point="
        "'gymnasium.envs.classic_control:CartPoleEnv', max_episode_steps=9)\n"
    )
    yield folder / "canary"
    sys.modules.pop("canary_env", None)


@pytest.fixture
def told(refused, tmp_path):
    """Runs a command that is refused, with nothing run or opened."""

    def run(*arguments):
        with watched(tmp_path) as watch:
            line = refused(*arguments)
        assert watch.done == []
        assert watch.mebibytes < _MEBIBYTES
        return line

    return run


def write(folder, **changes):
    text = json.dumps({**PPO, **changes})
    (folder / "preset.json").write_text(text)


def test_no_module_is_imported(run_folder, canary, told):
    write(run_folder, environment="canary_env:Canary-v0")
    for command in (["evaluate"], ["record"], ["record", "--dataset", "data"]):
        line = told(*command, run_folder)
        assert "give it with --env canary_env:Canary-v0" in line
    logdir = run_folder.parents[1]
    command = ["train", "ppo", "CartPole-v1", "--resume", "--logdir", logdir]
    assert "canary_env:Canary-v0, not in CartPole-v1" in told(*command)
    assert not canary.exists()


def test_a_module_that_was_typed_is_imported(run_folder, canary, capsys):
    write(run_folder, environment="canary_env:Canary-v0")
    env = ["--env", "canary_env:Canary-v0"]
    assert main(["evaluate", str(run_folder), *env, "--episodes", "1"]) == 0
    assert "Canary-v0: return" in capsys.readouterr().out
    assert canary.exists()


def test_gyms_environments_of_any_name(run_folder, told):
    name = "GymV21Environment-v0"
    write(run_folder, environment=name, env_kwargs={"env_id": "os:system"})
    assert f"asks for '{name}', which runs code" in told("evaluate", run_folder)


INVALID = {
    "deep": "[" * 10**5 + "]" * 10**5,
    "deep_object": '{"a":' * 10**5,
    "long": json.dumps({**PPO, "notes": "x" * 2**21}),
    "list": "[]",
    "nothing": "",
    "long_number": '{"num_envs": ' + "9" * 10**4 + "}",
    "no_text": "\x00\x01",
    **{
        name: json.dumps({**PPO, **changes})
        for name, changes in {
            "environments": {"num_envs": 10**9},
            "no_environments": {"num_envs": -1},
            "steps_kept": {"num_envs": 4096, "dataset": {"horizon": 10**5}},
            "horizon": {"dataset": {"horizon": 10**12}},
            "widths": {"networks": {"hidden": [10**9]}},
            "a_product": {"networks": {"hidden": [30_000, 30_000]}},
            "layers": {"networks": {"hidden": [1] * 10**4}},
            "infinity": {"agent": {"gamma": float("inf")}},
            "settings": {"agent": ["gamma"]},
            "environment": {"environment": ["CartPole-v1"]},
            "env_kwargs": {"env_kwargs": ["x"]},
            "many_env_kwargs": {"env_kwargs": {"x": [0] * 10**5}},
            "another_field": {"command": "touch canary"},
            "schedule": {
                "optimizer": {"name": "Adam", "learning_rate": {"a": 1}}
            },
        }.items()
    },
}


def test_invalid_presets_are_refused(run_folder, told):
    path = run_folder / "preset.json"
    logdir = run_folder.parents[1]
    resume = ["train", "ppo", "CartPole-v1", "--resume", "--logdir", logdir]
    before = sorted(run_folder.iterdir())
    for name, text in INVALID.items():
        path.write_text(text)
        line = told("train", "ppo", "CartPole-v1", "--preset", path)
        assert str(path) in line, name
        assert len(line) < 2000, name
        if name in ("deep", "long", "list", "env_kwargs", "many_env_kwargs"):
            for command in (["evaluate", run_folder], ["record", run_folder]):
                told(*command)
            told(*resume)
    assert sorted(run_folder.iterdir()) == before


def test_devices_pipes_and_folders_are_refused(run_folder, tmp_path, told):
    kinds = {
        "device": lambda path: path.symlink_to("/dev/zero"),
        "pipe": os.mkfifo,
        "folder": Path.mkdir,
        "gone": lambda path: path.symlink_to("nowhere"),
    }
    (run_folder / "best.keras").unlink()
    for kind, make in kinds.items():
        for name in ("preset.json", "agent.keras", "progress.csv"):
            folder = tmp_path / f"{kind}-{name}"
            shutil.copytree(run_folder, folder)
            (folder / name).unlink()
            make(folder / name)
            if name == "progress.csv":
                told("plot", folder / name)
            else:
                told("evaluate", folder)
    device = tmp_path / "device-preset.json" / "preset.json"
    line = told("train", "ppo", "CartPole-v1", "--preset", device)
    assert "a device" in line
