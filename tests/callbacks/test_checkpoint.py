"""A run that was stopped anywhere ends as one that was not."""

import contextlib
import functools
import signal
import threading
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_rl2 as rl
from keras_rl2.saving import plain_data
from keras_rl2.saving.checkpoint_folder import CheckpointFolder
from support.checkpointed import CASES
from support.checkpointed import outcome_of
from support.checkpointed import wait_for_checkpoint
from support.full_disks import room_for

EPOCHS = 4


class StopAfter(keras.callbacks.Callback):
    """Ends a process, or something like it, after some rounds."""

    def __init__(self, rounds):
        super().__init__()
        self.rounds = rounds

    def on_train_batch_end(self, batch, logs=None):
        self.rounds -= 1
        if not self.rounds:
            raise RuntimeError("the power is out")

    def get_state(self):
        """Remembers nothing: each process ends by its own count."""

    def set_state(self, state):
        pass


def made(case):
    """Makes an agent and its data, as each process does anew."""
    agent, data = CASES[case]()
    data.bind(agent)
    if hasattr(data, "collect"):
        # Only environments that were reset once can be put back.
        data.collect()
    return agent, data


@functools.cache
def beginning_of(case):
    """Returns an agent and its data, traced once, and their first states."""
    agent, data = made(case)
    agent.compile()
    agent.optimizer.build(agent.trainable_variables)
    return agent, data, (agent.get_state(), data.get_state())


def begin(case):
    """Returns an agent and its data as they are when a program begins."""
    agent, data, states = beginning_of(case)
    for each, state in zip((agent, data), states, strict=True):
        each.set_state(plain_data.copied(state))
    return agent, data


def fit(case, directory, *callbacks, make=begin, epochs=EPOCHS, **settings):
    agent, data = make(case)
    checkpoint = rl.callbacks.Checkpoint(directory, every_steps=1, **settings)
    history = agent.fit(
        data, epochs=epochs, callbacks=[*callbacks, checkpoint], verbose=0
    )
    return outcome_of(agent, data, history)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Returns the outcome of an uninterrupted run of a case."""
    return functools.cache(
        lambda case: fit(case, tmp_path_factory.mktemp(case))
    )


def interrupted(case, directory, rounds=5, *callbacks):
    with pytest.raises(RuntimeError, match="the power is out"):
        fit(case, directory, *callbacks, StopAfter(rounds))


@pytest.mark.parametrize(
    ("case", "make"),
    [
        ("PPO", begin),
        *(pytest.param(case, made, marks=pytest.mark.slow) for case in CASES),
    ],
)
def test_a_run_goes_on_bit_for_bit(case, make, tmp_path, whole):
    interrupted(case, tmp_path, 3)
    np.testing.assert_equal(fit(case, tmp_path, make=make), whole(case))


def test_the_same_without_checkpoints(whole):
    agent, data = begin("PPO")
    history = agent.fit(data, epochs=EPOCHS, verbose=0)
    np.testing.assert_equal(outcome_of(agent, data, history), whole("PPO"))


def test_a_delayed_write_saves_the_state_of_its_epoch(
    tmp_path, whole, monkeypatch
):
    """A checkpoint is that of its moment, however far training is by then."""
    is_further, write = threading.Event(), CheckpointFolder.write

    def write_late(*args, **kwargs):
        assert is_further.wait(60)
        return write(*args, **kwargs)

    class GoOn(keras.callbacks.Callback):
        """Waits in the third epoch while the last checkpoint is written."""

        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                is_further.clear()

        def on_train_batch_end(self, batch, logs=None):
            is_further.set()

    monkeypatch.setattr(CheckpointFolder, "write", write_late)
    interrupted("PPO", tmp_path, 5, GoOn())
    np.testing.assert_equal(fit("PPO", tmp_path), whole("PPO"))


def test_a_run_that_is_finished_is_not_begun_again(tmp_path):
    first = fit("PPO", tmp_path)
    np.testing.assert_equal(fit("PPO", tmp_path), first)
    # More may be asked for, and is what it would have been.
    more = fit("PPO", tmp_path, epochs=EPOCHS + 1)
    other = fit("PPO", tmp_path / "other", epochs=EPOCHS + 1)
    assert more["epoch"][-1] == EPOCHS
    np.testing.assert_equal(more, other)


def test_the_second_fit_of_a_program(tmp_path):
    def program(*callbacks):
        agent, data = begin("PPO")
        checkpoint = rl.callbacks.Checkpoint(tmp_path, every_steps=1)
        first = agent.fit(data, epochs=2, callbacks=[checkpoint], verbose=0)
        second = agent.fit(
            data, epochs=3, callbacks=[checkpoint, *callbacks], verbose=0
        )
        return first.epoch, outcome_of(agent, data, second)

    agent, data = begin("PPO")
    agent.fit(data, epochs=2, verbose=0)
    history = agent.fit(data, epochs=3, verbose=0)
    uninterrupted = outcome_of(agent, data, history)
    with pytest.raises(RuntimeError):
        program(StopAfter(3))
    epochs, outcome = program()
    assert epochs == []
    np.testing.assert_equal(outcome, uninterrupted)
    # As in a notebook whose first cell alone is run again.
    agent, data = begin("PPO")
    checkpoint = rl.callbacks.Checkpoint(tmp_path, every_steps=1)
    agent.fit(data, epochs=2, callbacks=[checkpoint], verbose=0)
    np.testing.assert_equal(
        agent.get_weights(), rl.load(tmp_path).get_weights()
    )


def events_of(log_dir):
    """Returns the steps of each curve, from the first on."""
    steps = {}
    for file in sorted(Path(log_dir).glob("events*")):
        for event in tf.compat.v1.train.summary_iterator(str(file)):
            for value in event.summary.value:
                steps.setdefault(value.tag, []).append(event.step)
    # Files of one second are named in no order.
    return {tag: sorted(each) for tag, each in steps.items()}


def test_curves_do_not_overlap(tmp_path):
    def board(name):
        return rl.callbacks.TensorBoard(tmp_path / name, histogram_freq=2)

    fit("PPO", tmp_path / "a", board("whole"), keep=2)
    assert len(list((tmp_path / "a").iterdir())) == 2
    # In the third epoch: the second has been written, and its checkpoint.
    interrupted("PPO", tmp_path / "b", 5, board("stopped"))
    fit("PPO", tmp_path / "b", board("stopped"))
    assert events_of(tmp_path / "stopped") == events_of(tmp_path / "whole")


class TestDamage:
    def test_the_one_before_is_read(self, tmp_path, whole):
        interrupted("PPO", tmp_path, 7)
        newest = max(tmp_path.glob("checkpoint-*"))
        newest.write_bytes(b"")
        with pytest.warns(UserWarning, match="is skipped"):
            again = fit("PPO", tmp_path)
        np.testing.assert_equal(again, whole("PPO"))

    def test_weights_that_are_none(self, tmp_path):
        agent, data = begin("PPO")
        weights = agent.trainable_variables[0]

        def spoil(epoch, logs):
            weights.assign(keras.ops.full(weights.shape, np.nan))

        spoiling = keras.callbacks.LambdaCallback(on_epoch_end=spoil)
        checkpoint = rl.callbacks.Checkpoint(tmp_path, every_steps=1)
        with pytest.warns(UserWarning, match="not finite"):
            agent.fit(data, callbacks=[checkpoint, spoiling], verbose=0)
        assert not list(tmp_path.glob("*.npz"))


class TestFullDisk:
    def test_training_continues_after_a_failed_write(self, tmp_path, whole):
        """Some checkpoints fail; those after them are whole."""

        class Full(keras.callbacks.Callback):
            """Fills the disk in the second epoch and the third."""

            def on_epoch_begin(self, epoch, logs=None):
                # After the checkpoint of this epoch.
                wait_for_checkpoint()
                if epoch == 0:
                    stack.enter_context(room_for(100))
                elif epoch == 2:
                    stack.close()

        with (
            contextlib.ExitStack() as stack,
            pytest.warns(UserWarning, match="training continues") as warned,
        ):
            interrupted("PPO", tmp_path, 7, Full())
        messages = [str(each.message) for each in warned]
        failed = [each for each in messages if "No checkpoint could" in each]
        assert len(failed) == 2
        assert "There is none" in failed[0]
        assert not list(tmp_path.rglob(".unfinished-*"))
        np.testing.assert_equal(fit("PPO", tmp_path), whole("PPO"))

    @pytest.mark.usefixtures("eagerly")
    def test_a_signal_is_obeyed(self, tmp_path):
        class Ask(keras.callbacks.Callback):
            def on_train_batch_begin(self, batch, logs=None):
                signal.raise_signal(signal.SIGTERM)

        with (
            room_for(100),
            pytest.warns(UserWarning, match="No checkpoint could"),
            pytest.raises(SystemExit),
        ):
            # Its environments are closed.
            fit("PPO", tmp_path, Ask(), make=made)


def test_bad_arguments(tmp_path):
    for settings in (
        {"every_steps": 0},
        {"every_seconds": -1},
        {"keep": 0},
        {"keep": 1.5},
    ):
        with pytest.raises(ValueError, match="Received"):
            rl.callbacks.Checkpoint(tmp_path, **settings)
    # No agent.
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    ones, checkpoint = np.ones((2, 1)), rl.callbacks.Checkpoint(tmp_path)
    with pytest.raises(ValueError, match="in the `fit` of an agent"):
        model.fit(ones, ones, callbacks=[checkpoint], verbose=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("in_the_foreground")
class TestSignals:
    """Signals arrive within an epoch of two rounds."""

    @pytest.mark.parametrize(
        ("number", "error"),
        [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)],
    )
    def test_the_round_is_finished(
        self, number, error, tmp_path, monkeypatch, whole
    ):
        class Ask(keras.callbacks.Callback):
            rounds = 0
            closed = False

            def on_train_begin(self, logs=None):
                monkeypatch.setattr(self.model.rollouts, "close", self.note)

            def note(self):
                Ask.closed = True

            def on_train_batch_begin(self, batch, logs=None):
                Ask.rounds += 1
                if Ask.rounds == 5:
                    signal.raise_signal(number)

        with pytest.raises(error) as raised:
            fit("PPO", tmp_path, Ask())
        if error is SystemExit:
            assert raised.value.code == 143
            assert Ask.closed
        assert Ask.rounds == 5
        np.testing.assert_equal(fit("PPO", tmp_path), whole("PPO"))

    @pytest.mark.slow
    def test_in_each_round_of_an_epoch(self, tmp_path):
        """The run also stops before each round, within an epoch."""

        class Rounds(keras.callbacks.Callback):
            """Counts those of each epoch, that of two processes too."""

            counts = ()

            def on_epoch_begin(self, epoch, logs=None):
                self.counts = *self.counts[:epoch], 0

            def on_train_batch_end(self, batch, logs=None):
                *before, last = self.counts
                self.counts = *before, last + 1

            def get_state(self):
                return self.counts

            def set_state(self, state):
                self.counts = state

        def program(directory, *callbacks, epochs=2):
            counted = Rounds()
            agent = rl.A2C.for_env("CartPole-v1", hidden=(4,), seed=0)
            agent.compile(run_eagerly=True)
            data = rl.RolloutDataset(
                "CartPole-v1", horizon=8, rounds_per_epoch=3, seed=0
            )
            checkpoint = rl.callbacks.Checkpoint(directory, every_steps=1)
            history = agent.fit(
                data,
                epochs=epochs,
                callbacks=[checkpoint, counted, *callbacks],
                verbose=0,
            )
            return outcome_of(agent, data, history), counted.counts

        def ask(*_, **__):
            signal.raise_signal(signal.SIGINT)

        in_round, before_round = (
            keras.callbacks.LambdaCallback(**{f"on_{what}_begin": ask})
            for what in ("train_batch", "epoch")
        )
        stopped, rounds = tmp_path / "stopped", []
        # There is a history to be forgotten.
        program(stopped, epochs=1)
        for asking in (in_round, before_round, in_round, before_round):
            with pytest.raises(KeyboardInterrupt):
                program(stopped, asking)
            saved = CheckpointFolder(stopped).newest().state
            rounds.append(saved["plan"]["rounds"])
        assert rounds == [1, 1, 2, 2]
        np.testing.assert_equal(program(stopped), program(tmp_path / "whole"))
