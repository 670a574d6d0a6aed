"""`keras-rl2 train --data`."""

import json

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2 import presets
from keras_rl2.cli.main import main
from keras_rl2.cli.plot import read_curve
from support.run_folders import rows_of

SMALL = ["networks.hidden=[8]", "dataset.updates_per_epoch=2"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "cartpole-random-v0"
    typed = ["record", "random", "--env", "CartPole-v1", "--steps", "200"]
    assert main([*typed, "--dataset", str(folder)]) == 0
    return folder


def train(logdir, *options, algorithm="cql", env="CartPole-v1"):
    typed = ["train", algorithm, env, "--logdir", str(logdir)]
    return main([*typed, *map(str, options)])


@pytest.mark.usefixtures("eagerly")
def test_an_offline_training_counts_updates_and_resumes(data, tmp_path, capsys):
    options = ["--data", data, "--updates", 6, "--evaluate", 4]
    options += ["--set", *SMALL]
    assert train(tmp_path, *options, algorithm="bc") == 0
    folder = tmp_path / "BehaviorCloning-CartPole-v1" / "seed-0"
    printed = capsys.readouterr().out
    assert "6 updates, " in printed
    assert "200 transitions" in printed
    first = rows_of(folder)
    assert [int(row["updates"]) for row in first] == [2, 4, 6]
    # Evaluated after 4 updates, and at the end for the file.
    assert [bool(row["val_episode_return"]) for row in first] == [
        *(False, True, False)
    ]
    preset = json.loads((folder / "preset.json").read_text())
    assert preset["updates"] == 6
    assert str(data) not in json.dumps(preset)
    best = json.loads((folder / "best.json").read_text())
    assert best["updates"] in (4, 6)
    assert list(folder.glob("events.out.tfevents.*"))

    resume = ["--resume", "--data", data]
    assert train(tmp_path, *resume, algorithm="bc") == 0
    assert "Nothing is trained: ask for more" in capsys.readouterr().out
    resume += ["--updates", 10]
    assert train(tmp_path, *resume, algorithm="bc") == 0
    rows = rows_of(folder)
    assert rows[:3] == first
    assert [int(row["updates"]) for row in rows] == [2, 4, 6, 8, 10]
    agent = keras.models.load_model(folder / "agent.keras")
    assert isinstance(agent, rl.BehaviorCloning)
    assert (int(agent.updates), agent.env_steps) == (10, 0)
    steps, returns = read_curve(folder / "progress.csv")
    assert steps.tolist() == [2, 4, 6, 8, 10]
    assert np.isfinite(returns).any()


def test_presets_are_for_updates(asked, data, tmp_path):
    assert train(tmp_path, "--data", data) == 0
    preset, folder, options = asked.pop()
    assert preset == presets.find("CQL", "CartPole-v1")
    assert folder.path == tmp_path / "CQL-CartPole-v1" / "seed-0"
    assert options["data"] == str(data)
    # Those for steps become some for updates.
    for algorithm in ("dqn", "iql"):
        options = ["--data", data, "--updates", "1e3"]
        assert train(tmp_path, *options, algorithm=algorithm) == 0
        preset, _, _ = asked.pop()
        assert (preset.updates, preset.total_steps) == (1000, 0)


def test_invalid_options_are_refused(data, tmp_path, refused, asked):
    given = ["--data", data]
    for algorithm, options, text in (
        ("cql", [], "expected --data FOLDER"),
        ("bc", [], "expected --data FOLDER"),
        ("iql", ["--resume"], "expected --data FOLDER"),
        ("td3bc", ["--preset", "default"], "expected --data FOLDER"),
        ("ppo", given, "from which no on-policy"),
        ("cql", [*given, "--steps", "9"], "--steps does not go with --data"),
        ("cql", [*given, "--envs", "2"], "--envs does not go with --data"),
        ("dqn", ["--updates", "9"], "needs --data FOLDER"),
        ("cql", ["--data", "nowhere"], "nowhere: no such file"),
        ("cql", [*given, "--set", "total_steps=9"], "Expected either"),
    ):
        typed = ["train", algorithm, "CartPole-v1", "--logdir", tmp_path / "a"]
        assert text in refused(*typed, *options), (algorithm, options)
    assert not asked


def test_an_invalid_dataset_leaves_a_training_unchanged(
    data, tmp_path, refused
):
    folder = tmp_path / "runs" / "CQL-CartPole-v1" / "seed-0"
    folder.mkdir(parents=True)
    (folder / "agent.keras").write_text("trained for hours")
    logdir = ["--logdir", tmp_path / "runs", "--overwrite"]
    (tmp_path / "empty").mkdir()
    typed = ["train", "cql", "CartPole-v1", *logdir]
    assert "none of these" in refused(*typed, "--data", tmp_path / "empty")
    # That of another environment, as folder and as arrays without spaces.
    other = ["train", "iql", "Pendulum-v1", *logdir, "--data"]
    assert "Expected data of Pendulum-v1" in refused(*other, data)
    np.savez(
        tmp_path / "wide.npz",
        observations=np.zeros((8, 7), np.float32),
        actions=np.zeros(8, np.int64),
        rewards=np.ones(8),
        terminations=np.arange(8) % 4 == 3,
        truncations=np.zeros(8, bool),
    )
    assert "(7,)" in refused(*typed, "--data", tmp_path / "wide.npz")
    assert (folder / "agent.keras").read_text() == "trained for hours"


def test_online_and_offline_trainings_are_not_mixed(
    data, tmp_path, refused, asked
):
    folder = tmp_path / "DQN-CartPole-v1" / "seed-0"
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "checkpoint-00000000.npz").touch()
    own = presets.find("DQN", "CartPole-v1")
    typed = ["train", "dqn", "CartPole-v1", "--resume", "--logdir", tmp_path]
    for preset, options, text in (
        (own, ["--data", data], "that took steps"),
        (presets.on_recorded_data(own), [], "on recorded data: expected"),
    ):
        (folder / "preset.json").write_text(json.dumps(preset.to_dict()))
        assert text in refused(*typed, *options)
    assert not asked
