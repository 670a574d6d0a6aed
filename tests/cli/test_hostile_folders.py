"""The folder of somebody else's training runs nothing that it names."""

import json
import os
import shutil
import sys

import pytest

from keras_rl2.cli.main import main
from keras_rl2.cli.run_folder import RunFolder
from support.watching import watched

_MEBIBYTES, _SECONDS = 1024, 2.0
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
    """Runs a command that is refused at once, with nothing done."""

    def run(*arguments):
        with watched(tmp_path) as watch:
            line = refused(*arguments)
        assert watch.done == []
        assert watch.seconds < _SECONDS
        assert watch.mebibytes < _MEBIBYTES
        return line

    return run


def write(folder, **changes):
    text = json.dumps({**PPO, **changes})
    (folder / "preset.json").write_text(text)


@pytest.mark.parametrize("command", ["evaluate", "record"])
def test_no_module_is_imported(command, run_folder, canary, told):
    write(run_folder, environment="canary_env:Canary-v0")
    line = told(command, run_folder)
    assert "give it with --env canary_env:Canary-v0" in line
    if command == "record":
        told(command, run_folder, "--dataset", "data")
    assert not canary.exists()


def test_who_names_it_himself_is_believed(run_folder, canary, capsys):
    write(run_folder, environment="canary_env:Canary-v0")
    env = ["--env", "canary_env:Canary-v0"]
    assert main(["evaluate", str(run_folder), *env, "--episodes", "1"]) == 0
    assert "Canary-v0: return" in capsys.readouterr().out
    assert canary.exists()


def test_going_on_imports_what_was_typed(run_folder, canary, told):
    write(run_folder, environment="canary_env:Canary-v0")
    logdir = run_folder.parents[1]
    command = ["train", "ppo", "CartPole-v1", "--resume", "--logdir", logdir]
    assert "canary_env:Canary-v0, not in CartPole-v1" in told(*command)
    assert not canary.exists()


def test_a_preset_is_for_the_environment_that_was_typed(
    canary, tmp_path, asked
):
    write(tmp_path, environment="canary_env:Canary-v0")
    preset = str(tmp_path / "preset.json")
    assert main(["train", "ppo", "CartPole-v1", "--preset", preset]) == 0
    assert asked[0][0].environment == "CartPole-v1"
    assert not canary.exists()


def test_gyms_environments_of_any_name(run_folder, told):
    name = "GymV21Environment-v0"
    write(run_folder, environment=name, env_kwargs={"env_id": "os:system"})
    assert f"asks for '{name}', which runs code" in told("evaluate", run_folder)


HOSTILE = {
    "deep": "[" * 10**5 + "]" * 10**5,
    "deep_object": '{"a":' * 10**5,
    "long": json.dumps({**PPO, "notes": "x" * 2**21}),
    "list": "[]",
    "text": '"PPO"',
    "nothing": "",
    "long_number": '{"num_envs": ' + "9" * 10**4 + "}",
    "no_text": "\x00\x01",
    **{
        name: json.dumps({**PPO, **changes})
        for name, changes in {
            "environments": {"num_envs": 10**9},
            "more_environments": {"num_envs": 10**300},
            "no_environments": {"num_envs": -1},
            "steps_kept": {"num_envs": 4096, "dataset": {"horizon": 10**5}},
            "horizon": {"dataset": {"horizon": 10**12}},
            "widths": {"networks": {"hidden": [10**9]}},
            "a_product": {"networks": {"hidden": [30_000, 30_000]}},
            "layers": {"networks": {"hidden": [1] * 10**4}},
            "infinity": {"agent": {"gamma": float("inf")}},
            "settings": {"agent": ["gamma"]},
            "environment": {"environment": ["CartPole-v1"]},
            "algorithm": {"algorithm": {"os": "system"}},
            "env_kwargs": {"env_kwargs": ["x"]},
            "many_env_kwargs": {"env_kwargs": {"x": [0] * 10**5}},
            "another_field": {"command": "touch canary"},
            "schedule": {
                "optimizer": {"name": "Adam", "learning_rate": {"a": 1}}
            },
        }.items()
    },
}


@pytest.mark.parametrize("name", HOSTILE)
def test_presets(name, tmp_path, told, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "preset.json"
    path.write_text(HOSTILE[name])
    line = told("train", "ppo", "CartPole-v1", "--preset", path)
    assert str(path) in line
    assert len(line) < 2000
    assert [each.name for each in tmp_path.iterdir()] == ["preset.json"]


@pytest.mark.parametrize(
    "name", ["deep", "long", "list", "env_kwargs", "many_env_kwargs"]
)
def test_presets_of_folders(name, run_folder, told):
    (run_folder / "preset.json").write_text(HOSTILE[name])
    for command in (["evaluate", run_folder], ["record", run_folder]):
        told(*command)
    logdir = run_folder.parents[1]
    told("train", "ppo", "CartPole-v1", "--resume", "--logdir", logdir)


@pytest.fixture(params=["zero", "pipe", "folder", "gone"])
def no_file(request, tmp_path):
    """A path where there is no file."""
    path = tmp_path / f"{request.param}.json"
    if request.param == "zero":
        path.symlink_to("/dev/zero")
    if request.param == "pipe":
        os.mkfifo(path)
    if request.param == "folder":
        path.mkdir()
    if request.param == "gone":
        path.symlink_to("nowhere")
    return path


def test_what_is_no_file(no_file, run_folder, told):
    assert "zero" not in no_file.name or "a device" in told(
        "train", "ppo", "CartPole-v1", "--preset", no_file
    )
    for name in ("preset.json", "agent.keras", "progress.csv"):
        folder = run_folder.parent / "seed-1"
        shutil.copytree(run_folder, folder)
        (folder / "best.keras").unlink()
        (folder / name).unlink()
        os.rename(no_file, folder / name)
        if name == "progress.csv":
            told("plot", folder / name)
        else:
            told("evaluate", folder)
        os.rename(folder / name, no_file)
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00",
        b"env_steps,episode_return\n" + b"x" * 10**6,
        b"env_steps,episode_return\n" + b"," * 10**6 + b"\n",
        b"a,b\n1,2\n",
        b"env_steps,episode_return\n1,high\n",
        b"env_steps,episode_return\n" + b"9" * 10**5 + b",1\n",
        b"",
    ],
    ids=["bytes", "no_end", "commas", "columns", "words", "number", "empty"],
)
def test_tables(content, tmp_path, told):
    path = tmp_path / "progress.csv"
    path.write_bytes(content)
    assert str(path.parent) in told("plot", path)


def test_a_row_that_was_cut_off_is_left_out(tmp_path):
    from keras_rl2.cli.progress_file import read_curve

    path = tmp_path / "progress.csv"
    path.write_text("env_steps,episode_return\n10,1.5\n20,2.5\n30,3")
    steps, returns = read_curve(path)
    assert steps.tolist() == [10.0, 20.0]
    assert returns.tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    "content",
    [
        "[" * 10**5,
        *(
            pytest.param(text, marks=pytest.mark.slow)
            for text in ("[1]", "{}", "x", '{"episode_return": {}}')
        ),
    ],
)
def test_scores(content, run_folder, refused):
    (run_folder / "best.json").write_text(content)
    logdir = run_folder.parents[1]
    command = ["train", "ppo", "CartPole-v1", "--resume", "--logdir", logdir]
    line = refused(*command, "--steps", "5000")
    assert "best.json" in line


def test_a_run_folder_writes_whole_files(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_preset(PPO)
    from support.full_disks import room_for

    for size in range(0, 90, 3):
        with room_for(size), pytest.raises(OSError, match="too large"):
            folder.write_preset({**PPO, "notes": "x" * 100})
        assert folder.read_preset() == PPO
        assert list(tmp_path.iterdir()) == [folder.preset]
