"""The values that experiment trackers receive, and their files afterwards.

Weights & Biases and MLflow write to a folder of the test, with no server.
"""

import json

import numpy as np
import pytest

from keras_rl2.callbacks import TensorBoard
from keras_rl2.callbacks import Tracker
from support.events import read
from support.trainings import fit_plain_critic


class Told:
    """A tracker that keeps the values that it receives."""

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


def test_a_tracker_gets_the_values_that_tensorboard_writes(
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


def test_settings_are_sent_once(agent, rollouts, told):
    tracker = Tracker(told.log, told.settings.append)
    fit(agent, rollouts, tracker)
    fit(agent, rollouts, tracker)
    (settings,) = told.settings
    assert settings["algorithm"] == "PPO"
    assert settings["agent.normalize_advantages"] is True
    assert settings["dataset.horizon"] == 64
    assert "agent.actor" not in settings
    json.dumps(settings)
    assert [step for step, _ in told.rows] == [64 * i for i in range(1, 7)]


def test_a_plain_keras_model_is_tracked_too(agent, rollouts, told):
    fit_plain_critic(agent, rollouts, Tracker(told.log))
    assert [step for step, _ in told.rows] == [64, 128]
    for arguments in ((None,), ("run",), (print, {})):
        with pytest.raises(ValueError, match=r"Expected `log.* to be a func"):
            Tracker(*arguments)


@pytest.fixture
def wandb_run(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for folder in ("CACHE", "CONFIG", "DATA", "ARTIFACT"):
        monkeypatch.setenv(f"WANDB_{folder}_DIR", str(tmp_path / folder))
    run = wandb.init(mode="offline", dir=tmp_path, project="test")
    yield run
    wandb.teardown()


@pytest.mark.slow
def test_weights_and_biases_has_it_over_environment_steps(
    agent, rollouts, episodes, wandb_run
):
    tracker = Tracker(wandb_run.log, wandb_run.config.update)
    history = fit(agent, rollouts, tracker, validation_data=episodes)
    for tag, key in {
        "_step": "env_steps",
        "eval/mean_reward": "val_episode_return",
        "train/loss": "loss",
    }.items():
        # The last row is written as the run ends.
        found = wandb_run.summary[tag]
        assert found == pytest.approx(history[key][-2]), tag
    assert wandb_run.config["agent.gamma"] == 0.99
    assert wandb_run.config["dataset.horizon"] == 64


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    module = pytest.importorskip("mlflow")
    before = module.get_tracking_uri()
    module.set_tracking_uri((tmp_path / "mlruns").as_uri())
    yield module
    module.set_tracking_uri(before)


@pytest.mark.slow
def test_mlflow_has_it_over_environment_steps(agent, rollouts, mlflow):
    tracker = Tracker(mlflow.log_metrics, mlflow.log_params)
    with mlflow.start_run() as run:
        history = fit(agent, rollouts, tracker)
    client = mlflow.tracking.MlflowClient()
    found = client.get_metric_history(run.info.run_id, "train/loss")
    # Those of one millisecond come in any order.
    found.sort(key=lambda each: each.step)
    assert [each.step for each in found] == [64, 128, 192]
    assert [each.value for each in found] == pytest.approx(history["loss"])
    params = client.get_run(run.info.run_id).data.params
    assert params["agent.gamma"] == "0.99"
    assert params["algorithm"] == "PPO"
