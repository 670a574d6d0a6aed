"""What experiment trackers are told, and what they have of it afterwards.

Weights & Biases and MLflow write to a folder of the test, with no server.
"""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from keras_rl2.callbacks import TensorBoard
from keras_rl2.callbacks import Tracker
from support.events import read
from support.trainings import fit_plain_critic


class Told:
    """A tracker that keeps what it is told."""

    def __init__(self):
        self.rows = []
        self.settings = []

    def log(self, values, step=None):
        self.rows.append((step, values))


@pytest.fixture
def told():
    return Told()


def fit(agent, rollouts, tracker, **kwargs):
    return agent.fit(
        rollouts, epochs=3, callbacks=tracker, verbose=0, **kwargs
    ).history


def test_it_is_told_what_tensorboard_writes(
    agent, rollouts, episodes, told, tmp_path
):
    callbacks = [TensorBoard(tmp_path), Tracker(told.log)]
    fit(agent, rollouts, callbacks, validation_data=episodes, validation_freq=2)
    events = read(tmp_path)
    found = {}
    for step, values in told.rows:
        for tag, value in values.items():
            found.setdefault(tag, []).append((step, np.float32(value)))
    assert found == {
        tag: [(e.step, np.float32(e.value)) for e in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }
    assert [step for step, _ in found["eval/mean_reward"]] == [128]


def test_settings_are_told_once(agent, rollouts, told):
    tracker = Tracker(told.log, told.settings.append)
    fit(agent, rollouts, tracker)
    fit(agent, rollouts, tracker)
    (settings,) = told.settings
    assert settings["algorithm"] == "PPO"
    assert settings["agent.gamma"] == 0.99
    assert settings["agent.normalize_advantages"] is True
    assert settings["agent.seed"] == 0
    assert settings["optimizer.learning_rate"] == 0.001
    assert settings["dataset.horizon"] == 64
    assert "agent.actor" not in settings
    json.dumps(settings)
    assert [step for step, _ in told.rows] == [64 * i for i in range(1, 7)]


def test_what_is_not_finite_is_left_out(agent, told):
    tracker = Tracker(told.log)
    tracker.set_model(agent)
    tracker.on_epoch_end(0, {"episode_return": np.nan, "loss": 1.0})
    ((_, values),) = told.rows
    assert values["train/loss"] == 1.0
    assert "rollout/ep_rew_mean" not in values


def test_a_plain_keras_model_is_told_of_too(agent, rollouts, told):
    fit_plain_critic(agent, rollouts, Tracker(told.log))
    assert [step for step, _ in told.rows] == [64, 128]
    for arguments in ((None,), ("run",), (print, {})):
        with pytest.raises(TypeError, match=r"Expected `log.* to be a func"):
            Tracker(*arguments)


# A log in the format of LevelDB: blocks of 32 KiB, in each of them pieces of
# records behind a checksum, a length and a kind.
_BLOCK = 2**15
_HEADER = struct.Struct("<IHB")
# Of the file: a name, a magic number, a version.
_BEGINNING = 7
_FULL, _LAST = 1, 4


def wandb_records(folder):
    """Returns the rows of an offline run, and its settings.

    Args:
        folder: str or path. As of `run.dir`, of a run that has finished.
    """
    # Installed where it is tested.
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = Path(folder).parent.glob("*.wandb")
    rows, settings = [], {}
    for data in _records(path.read_bytes()):
        record = Record.FromString(data)
        row = {
            _key(item): json.loads(item.value_json)
            for item in record.history.item
        }
        if row:
            rows.append(row)
        for item in record.config.update:
            settings[_key(item)] = json.loads(item.value_json)
    return rows, settings


def _key(item):
    return item.key or ".".join(item.nested_key)


def _records(data):
    """Yields the records of a log."""
    assert data[:4] == b":W&B"
    at, record = _BEGINNING, b""
    while at < len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEADER.size:
            at += left
            continue
        _, length, kind = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        record += data[at : at + length]
        at += length
        if kind in (_FULL, _LAST):
            yield record
            record = b""


@pytest.fixture
def wandb_run(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for folder in ("CACHE", "CONFIG", "DATA", "ARTIFACT"):
        monkeypatch.setenv(f"WANDB_{folder}_DIR", str(tmp_path / folder))
    run = wandb.init(mode="offline", dir=tmp_path, project="test")
    yield run
    wandb.teardown()


def finished(run):
    """Returns the rows and settings in the folder of a run."""
    import wandb

    run.finish()
    # Waits for the process that writes.
    wandb.teardown()
    return wandb_records(run.dir)


@pytest.mark.slow
def test_weights_and_biases_has_it_over_environment_steps(
    agent, rollouts, episodes, wandb_run
):
    tracker = Tracker(wandb_run.log, wandb_run.config.update)
    history = fit(agent, rollouts, tracker, validation_data=episodes)
    rows, settings = finished(wandb_run)
    assert [row["_step"] for row in rows] == [64, 128, 192]
    for tag, key in {
        "eval/mean_reward": "val_episode_return",
        "train/loss": "loss",
        "time/total_timesteps": "env_steps",
    }.items():
        assert [row[tag] for row in rows] == pytest.approx(history[key]), tag
    assert settings["agent.gamma"] == 0.99
    assert settings["dataset.horizon"] == 64


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    module = pytest.importorskip("mlflow")
    before = module.get_tracking_uri()
    module.set_tracking_uri((tmp_path / "mlruns").as_uri())
    yield module
    module.set_tracking_uri(before)


def metric(mlflow, run, name):
    """Returns steps and values of a run, read back by MLflow's client."""
    client = mlflow.tracking.MlflowClient()
    found = client.get_metric_history(run.info.run_id, name)
    # Those of one millisecond come in any order.
    found.sort(key=lambda each: each.step)
    return [each.step for each in found], [each.value for each in found]


@pytest.mark.slow
def test_mlflow_has_it_over_environment_steps(
    agent, rollouts, episodes, mlflow
):
    tracker = Tracker(mlflow.log_metrics, mlflow.log_params)
    with mlflow.start_run() as run:
        history = fit(agent, rollouts, tracker, validation_data=episodes)
    for tag, key in {
        "eval/mean_reward": "val_episode_return",
        "train/loss": "loss",
    }.items():
        steps, values = metric(mlflow, run, tag)
        assert steps == [64, 128, 192]
        assert values == pytest.approx(history[key])
    params = mlflow.tracking.MlflowClient().get_run(run.info.run_id).data.params
    assert params["agent.gamma"] == "0.99"
    assert params["dataset.horizon"] == "64"
    assert params["algorithm"] == "PPO"
