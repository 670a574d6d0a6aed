"""The HParams tab of TensorBoard, read by its own backend."""

import keras
import pytest

import keras_rl2 as rl
from keras_rl2.callbacks import TensorBoard
from keras_rl2.callbacks.tracker import hyper_parameters
from support.hparams_tab import table


def test_settings_stand_beside_returns(agent, rollouts, episodes, tmp_path):
    board = TensorBoard(tmp_path / "run")
    logs = agent.fit(
        rollouts, validation_data=episodes, callbacks=[board], verbose=0
    ).history
    columns, (row,) = table(tmp_path)
    assert row["hparams"]["algorithm"] == "PPO"
    assert row["hparams"]["agent.gamma"] == 0.99
    assert row["hparams"]["agent.normalize_advantages"] is True
    assert row["hparams"]["optimizer.learning_rate"] == 0.001
    assert row["hparams"]["dataset.horizon"] == 64
    assert not [each for each in columns if each.endswith(("seed", "_space"))]
    for tag, key in (
        ("eval/mean_reward", "val_episode_return"),
        ("rollout/ep_rew_mean", "episode_return"),
    ):
        assert [row["metrics"][tag]] == pytest.approx(logs[key])
        assert tag in columns
    assert row["sessions"] == {"run": "STATUS_SUCCESS"}


def test_schedules_are_settings():
    schedule = keras.optimizers.schedules.PolynomialDecay(0.2, 100, 0.0)
    agent = rl.PPO.for_env("CartPole-v1", hidden=(4,), clip_ratio=schedule)
    agent.compile(keras.optimizers.Adam(schedule))
    found = hyper_parameters(agent)
    for name in ("agent.clip_ratio", "optimizer.learning_rate"):
        assert found[name] == (
            "PolynomialDecay(initial_learning_rate=0.2, decay_steps=100, "
            "end_learning_rate=0, power=1)"
        )


def test_a_run_that_was_broken_off_has_no_good_end(agent, rollouts, tmp_path):
    class Stop(rl.callbacks.Progress):
        def on_epoch_end(self, epoch, logs=None):
            raise KeyboardInterrupt

    for name, written in (("run", True), ("empty", False)):
        board = TensorBoard(
            tmp_path / name / "run", write_hyper_parameters=written
        )
        with pytest.raises(KeyboardInterrupt):
            agent.fit(rollouts, callbacks=[board, Stop()])
    _, (row,) = table(tmp_path / "run")
    assert row["sessions"] == {"run": "STATUS_UNKNOWN"}
    # It is empty on demand.
    assert not table(tmp_path / "empty")[1]
