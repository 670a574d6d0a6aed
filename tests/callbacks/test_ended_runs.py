"""A run that has come to its end rests, until something else is asked for."""

import logging
import re
import signal

import gymnasium
import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.saving.checkpoint_folder import CheckpointFolder

STEPS = 8


def train(directory, *callbacks, algorithm=rl.A2C, verbose=0, **length):
    """Runs the program: returns the epochs of its history, and the weights."""
    data = rl.RolloutDataset(
        "CartPole-v1", horizon=STEPS, rounds_per_epoch=1, seed=0
    )
    agent = algorithm.for_env("CartPole-v1", hidden=(4,), seed=0)
    agent.compile(run_eagerly=True)
    checkpoint = rl.callbacks.Checkpoint(directory, every_steps=1)
    history = agent.fit(
        data,
        callbacks=[*callbacks, checkpoint],
        verbose=verbose,
        **(length or {"epochs": 6}),
    )
    return history.epoch, agent.get_weights()


def never_better(patience=1, **settings):
    """Stops after so many epochs and one more."""
    return keras.callbacks.EarlyStopping(
        "loss", min_delta=1e9, patience=patience, mode="min", **settings
    )


class StopAt(keras.callbacks.Callback):
    """A callback of the user that stops the training."""

    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_end(self, epoch, logs=None):
        # Whoever stopped, stops again.
        if epoch >= self.epoch:
            self.model.stop_training = True


def end_of(directory):
    return CheckpointFolder(directory).newest().state["ended"]


@pytest.mark.parametrize(
    "stop",
    [
        lambda: never_better(2, restore_best_weights=True),
        pytest.param(lambda: StopAt(2), marks=pytest.mark.slow),
    ],
)
def test_stopped_by_a_callback(stop, tmp_path, caplog):
    epochs, weights = train(tmp_path, stop())
    assert epochs == [0, 1, 2]
    assert end_of(tmp_path) == "stopped by a callback"
    with caplog.at_level(logging.INFO, "keras_rl2"):
        for _ in range(2):
            again, others = train(tmp_path, stop())
            assert again == epochs
            np.testing.assert_equal(others, weights)
    assert caplog.text.count("the training is stopped by a callback") == 2
    # More epochs.
    assert train(tmp_path, stop(), epochs=7)[0] == [0, 1, 2, 3]


def test_a_second_fit_counts_its_own_steps(tmp_path):
    data = rl.RolloutDataset(
        "CartPole-v1", horizon=STEPS, rounds_per_epoch=1, seed=0
    )
    agent = rl.A2C.for_env("CartPole-v1", hidden=(4,), seed=0)
    agent.compile(run_eagerly=True)
    checkpoint = rl.callbacks.Checkpoint(tmp_path, every_steps=1)
    for given, reason in (([], "complete"), ([StopAt(0)], "stopped")):
        agent.fit(
            data,
            total_steps=3 * STEPS,
            callbacks=[*given, checkpoint],
            verbose=0,
        )
        assert end_of(tmp_path).startswith(reason)


def test_the_same_callback_used_again(tmp_path):
    """Keras changes its arguments."""
    stop = never_better()
    assert train(tmp_path, stop)[0] == [0, 1]
    assert train(tmp_path, stop)[0] == [0, 1]


def test_a_complete_run_trains_further_epochs_only(tmp_path, caplog):
    assert train(tmp_path, epochs=3)[0] == [0, 1, 2]
    assert end_of(tmp_path) == "complete (epochs=3)"
    with caplog.at_level(logging.INFO, "keras_rl2"):
        assert train(tmp_path, epochs=2)[0] == [0, 1, 2]
    assert "complete (epochs=3)" in caplog.text
    assert train(tmp_path, epochs=4)[0] == [0, 1, 2, 3]


def test_restoring_and_completion_are_printed_unless_silent(tmp_path, capsys):
    train(tmp_path, epochs=2)
    newest = max(tmp_path.glob("checkpoint-*")).stem
    for verbose in (0, "auto"):
        capsys.readouterr()
        train(tmp_path, epochs=2, verbose=verbose)
        printed = capsys.readouterr().out
        for line in (
            rf"{tmp_path}: restored {newest}, after epoch 2 and 1\d envi",
            rf"{tmp_path}: the training is complete \(epochs=2\)",
        ):
            assert (re.search(line, printed) is not None) == (verbose != 0)


def test_steps_that_were_taken_already(tmp_path, caplog):
    """A whole episode takes more than was asked for."""
    epochs, _ = train(tmp_path, algorithm=rl.REINFORCE, total_steps=1)
    with caplog.at_level(logging.INFO, "keras_rl2"):
        again, _ = train(tmp_path, algorithm=rl.REINFORCE, total_steps=2)
    assert again == epochs
    assert "Nothing is trained" in caplog.text


@pytest.mark.slow
def test_steps_of_whole_episodes(tmp_path):
    """Nobody knows beforehand in which epoch they are taken."""
    epochs, weights = train(tmp_path, algorithm=rl.REINFORCE, total_steps=30)
    again, others = train(tmp_path, algorithm=rl.REINFORCE, total_steps=30)
    assert again == epochs
    np.testing.assert_equal(others, weights)
    more, _ = train(tmp_path, algorithm=rl.REINFORCE, total_steps=150)
    assert len(more) > len(epochs)


def test_an_error_is_no_end(tmp_path):
    def fail(epoch, logs):
        if epoch == 2:
            raise RuntimeError("the disk of the data is gone")

    failing = keras.callbacks.LambdaCallback(on_epoch_end=fail)
    with pytest.raises(RuntimeError, match="is gone"):
        train(tmp_path, failing, epochs=4)
    assert end_of(tmp_path) is None
    assert train(tmp_path, epochs=4)[0] == [0, 1, 2, 3]


def test_a_signal_is_no_end(tmp_path):
    def ask(epoch, logs):
        if epoch == 1:
            signal.raise_signal(signal.SIGTERM)

    asking = keras.callbacks.LambdaCallback(on_epoch_begin=ask)
    with pytest.raises(SystemExit):
        train(tmp_path, asking, epochs=3)
    assert end_of(tmp_path) is None
    assert train(tmp_path, epochs=3)[0] == [0, 1, 2]


def fit_seeded(
    directory, algorithm="A2C", env="CartPole-v1", agent_seed=0, data_seed=0
):
    """Trains, or is refused with nothing changed."""
    data = rl.RolloutDataset(env, horizon=STEPS, seed=data_seed)
    agent = getattr(rl, algorithm).for_env(env, hidden=(4,), seed=agent_seed)
    agent.compile(run_eagerly=True)
    checkpoint = rl.callbacks.Checkpoint(directory, every_steps=1)
    before = agent.get_weights()
    try:
        agent.fit(data, epochs=1, callbacks=[checkpoint], verbose=0)
    except ValueError:
        np.testing.assert_equal(agent.get_weights(), before)
        assert data.env.steps == 0
        raise


class TestAnotherRun:
    @pytest.fixture(autouse=True)
    def mirrored(self):
        """Another environment, of the same shapes."""
        entry = gymnasium.spec("CartPole-v1").entry_point
        gymnasium.register("Mirrored-v0", entry_point=entry)
        yield
        del gymnasium.registry["Mirrored-v0"]

    @pytest.fixture(scope="class")
    @classmethod
    def directory(cls, tmp_path_factory):
        directory = tmp_path_factory.mktemp("run")
        fit_seeded(directory)
        return directory

    def test_the_error_names_the_difference(self, directory):
        files = sorted(directory.rglob("*"))
        for settings, words in (
            ({"algorithm": "PPO"}, "algorithm 'A2C', where this one has 'PPO'"),
            ({"env": "Mirrored-v0"}, "environment 'CartPole-v1'"),
            ({"agent_seed": 1}, "seed of the agent 0, where this one has 1"),
            ({"data_seed": None}, "seed of the dataset 0, .* has None"),
        ):
            with pytest.raises(ValueError, match=f"same training.*{words}"):
                fit_seeded(directory, **settings)
            assert sorted(directory.rglob("*")) == files
        # Of the same.
        fit_seeded(directory)
        assert len(list(directory.glob("checkpoint-*"))) == 1
