"""Keras' own callbacks have the same effect on an agent as on any model."""

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from support.trainings import eager_dqn

CALLBACKS = keras.callbacks


def rates(agent):
    arguments = agent.compile_arguments
    both = [arguments.optimizer, arguments.critic_optimizer]
    return [float(x.learning_rate.numpy()) for x in both if x is not None]


def test_early_stopping_restores_targets_too():
    agent, replay = eager_dqn("CartPole-v1", warm_up=0)
    kept = []
    stopping = CALLBACKS.EarlyStopping(
        "episode_return", min_delta=1e9, patience=2, restore_best_weights=True
    )
    keep = CALLBACKS.LambdaCallback(
        on_epoch_end=lambda epoch, logs: kept.append(agent.get_weights())
    )
    history = agent.fit(replay, epochs=9, callbacks=[keep, stopping], verbose=0)
    # No episode ends in the first epoch.
    assert history.epoch == [0, 1, 2, 3]
    np.testing.assert_equal(agent.get_weights(), kept[1])
    assert agent.updates.numpy() == 8


class Best(CALLBACKS.Callback):
    """Keeps the best return, and the step that it belongs to."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_epoch_end(self, epoch, logs=None):
        if "episode_return" in logs:
            self.seen.append((logs["episode_return"], logs["env_steps"]))


@pytest.mark.filterwarnings("ignore:Can save best model only")
def test_monitors_wait_for_the_first_value(tmp_path):
    """Pendulum's episodes have 200 steps: none ends in the first epoch."""
    agent = rl.PPO.for_env("Pendulum-v1", hidden=(8,), seed=0)
    agent.compile(run_eagerly=True)
    rounds = rl.RolloutDataset(
        "Pendulum-v1", num_envs=1, horizon=150, passes=1, batch_size=150, seed=0
    )
    path, table, best = tmp_path / "best.keras", tmp_path / "log.csv", Best()
    keep = CALLBACKS.ModelCheckpoint(
        path, monitor="episode_return", save_best_only=True
    )
    history = agent.fit(
        rounds,
        epochs=5,
        callbacks=[CALLBACKS.CSVLogger(table), best, keep],
        verbose=0,
    ).history
    assert len(best.seen) == 4
    assert (keep.best, rl.load(path).env_steps) == max(best.seen)
    # Tables have a row for each epoch.
    expected = [np.nan] + [score for score, _ in best.seen]
    np.testing.assert_array_equal(history["episode_return"], expected)
    rows = np.genfromtxt(table, delimiter=",", names=True)
    np.testing.assert_allclose(rows["episode_return"], expected)


def test_checkpoint_keeps_the_best_agent(
    two_optimizers, rollouts, episodes, tmp_path
):
    path = tmp_path / "best.keras"
    history = two_optimizers.fit(
        rollouts,
        epochs=4,
        validation_data=episodes,
        callbacks=[
            CALLBACKS.ModelCheckpoint(
                path, monitor="val_episode_return", save_best_only=True
            )
        ],
        verbose=0,
    ).history
    scores = history["val_episode_return"]
    best = keras.models.load_model(path)
    assert best.evaluate(episodes)["episode_return"] == max(scores)
    assert best.env_steps == history["env_steps"][int(np.argmax(scores))]
    assert rates(best) == rates(two_optimizers)
    more = best.fit(rollouts, verbose=0).history
    assert more["env_steps"] == [best.env_steps]


def test_learning_rate_scheduler(two_optimizers, rollouts):
    before = rates(two_optimizers)
    scheduler = CALLBACKS.LearningRateScheduler(
        lambda epoch, rate: rate * 0.5 if epoch else rate
    )
    history = two_optimizers.fit(
        rollouts, epochs=3, callbacks=[scheduler], verbose=0
    ).history
    assert rates(two_optimizers) == pytest.approx(
        [0.25 * rate for rate in before]
    )
    logged = [key for key in history if key.startswith("learning_rate")]
    assert len(logged) == len(before) == 2
    for key in logged:
        first, second, third = history[key]
        assert (second, third) == pytest.approx((0.5 * first, 0.25 * first))
    weights = two_optimizers.get_weights()
    nought = CALLBACKS.LearningRateScheduler(lambda epoch: 0.0)
    two_optimizers.fit(rollouts, epochs=2, callbacks=[nought], verbose=0)
    np.testing.assert_equal(two_optimizers.get_weights(), weights)


def test_terminate_on_nan(agent, rollouts):
    bias = agent.critic.layers[-1].bias
    bias.assign(bias * np.nan)
    history = agent.fit(
        rollouts, epochs=5, callbacks=[CALLBACKS.TerminateOnNaN()], verbose=0
    )
    assert history.epoch == [0]


class Failure(CALLBACKS.Callback):
    """Breaks off at the beginning of the third epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            raise RuntimeError("power failure")


def test_backup_and_restore(two_optimizers, rollouts, tmp_path):
    def backup():
        return CALLBACKS.BackupAndRestore(tmp_path / "backup")

    with pytest.raises(RuntimeError, match="power failure"):
        two_optimizers.fit(
            rollouts, epochs=4, callbacks=[backup(), Failure()], verbose=0
        )
    fresh = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=1)
    actor, critic = (
        keras.optimizers.Adam(name=name) for name in ("actor", "critic")
    )
    fresh.compile(actor, critic_optimizer=critic, run_eagerly=True)
    at_begin = []

    def compare(logs):
        np.testing.assert_equal(
            fresh.get_weights(), two_optimizers.get_weights()
        )
        at_begin.append(fresh.env_steps)

    history = fresh.fit(
        rollouts,
        epochs=4,
        callbacks=[backup(), CALLBACKS.LambdaCallback(on_train_begin=compare)],
        verbose=0,
    )
    assert at_begin == [128]
    assert history.epoch == [2, 3]
    assert history.history["env_steps"] == [192, 256]
    assert rates(fresh) == rates(two_optimizers)
    assert actor.iterations.numpy() == 4 * rollouts.updates_per_round


def test_stop_training_ends_the_fit(agent, rollouts, tmp_path):
    class Enough(CALLBACKS.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = logs["env_steps"] >= 128

    callbacks = [Enough(), CALLBACKS.TensorBoard(tmp_path)]
    history = agent.fit(rollouts, epochs=9, callbacks=callbacks, verbose=0)
    assert history.epoch == [0, 1]
    assert list(tmp_path.rglob("events.out.tfevents*"))
