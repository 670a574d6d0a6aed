"""Checkpoints are written beside training, by one process, or said to fail."""

import threading

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.callbacks import checkpoint
from keras_rl2.saving.checkpoint_folder import CheckpointFolder


class Program:
    """Makes agent and data, and trains them."""

    def __init__(self):
        self.data = rl.RolloutDataset("CartPole-v1", horizon=8, seed=0)
        self.agent = rl.A2C.for_env("CartPole-v1", hidden=(4,), seed=0)
        self.agent.compile(run_eagerly=True)

    def fit(self, directory, *callbacks, epochs=3, **settings):
        settings = {"every_steps": 1, **settings}
        saving = rl.callbacks.Checkpoint(directory, **settings)
        return self.agent.fit(
            self.data,
            epochs=epochs,
            callbacks=[*callbacks, saving],
            verbose=0,
        )


@pytest.fixture
def program():
    return Program()


def at_epoch_begin(function):
    return keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: function(epoch)
    )


def names(directory):
    return sorted(each.name for each in directory.iterdir())


def epochs_of(directory):
    """Returns the epochs that checkpoints go on with."""
    folder = CheckpointFolder(directory)
    states = [folder.read(path).state for path in folder.paths()]
    return [state["plan"]["epoch"] for state in states]


class TestWhen:
    def test_as_soon_as_so_many_steps_are_taken(self, program, tmp_path):
        def set_steps(epoch, logs):
            program.agent.env_steps = 10 * (epoch + 1)

        steps = keras.callbacks.LambdaCallback(on_epoch_end=set_steps)
        program.fit(tmp_path, steps, epochs=5, every_steps=20, keep=9)
        assert epochs_of(tmp_path) == [2, 4, 5]

    def test_as_soon_as_so_many_seconds_are_over(
        self, program, tmp_path, monkeypatch
    ):
        now = [1000.0]
        monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])

        def pass_time(epoch):
            now[0] += 10.0

        program.fit(
            tmp_path,
            at_epoch_begin(pass_time),
            epochs=5,
            every_steps=None,
            every_seconds=20.0,
            keep=9,
        )
        assert epochs_of(tmp_path) == [2, 4, 5]


class TestOneWriter:
    def test_a_second_one_is_refused(self, program, tmp_path):
        other, folder = Program(), CheckpointFolder(tmp_path)

        def try_it(epoch):
            with pytest.raises(ValueError, match="one writer at a time"):
                folder.clear()
            with pytest.raises(ValueError, match="one writer at a time"):
                other.fit(tmp_path)

        program.fit(tmp_path, at_epoch_begin(try_it))
        assert other.data.env.steps == 0
        assert "writer.lock" not in names(tmp_path)
        other.fit(tmp_path)

    def test_ctrl_c_waits_before_it_is_given_back(
        self, program, tmp_path, monkeypatch
    ):
        held, interrupted, is_awaited = [], [], threading.Event()
        write, join = CheckpointFolder._write, CheckpointFolder._join

        def write_late(folder, *content):
            # The last one goes on only when the end of `fit` waits for it.
            assert not held or is_awaited.wait(60)
            held.append("writer.lock" in names(tmp_path))
            write(folder, *content)

        def seen_join(folder):
            if interrupted:
                is_awaited.set()
            return join(folder)

        def interrupt(epoch):
            if epoch == 2:
                interrupted.append(epoch)
                raise KeyboardInterrupt

        monkeypatch.setattr(CheckpointFolder, "_write", write_late)
        monkeypatch.setattr(CheckpointFolder, "_join", seen_join)
        with pytest.raises(KeyboardInterrupt):
            program.fit(tmp_path, at_epoch_begin(interrupt))
        assert held == [True, True]


class TestNoFolderToWriteTo:
    def test_a_file_in_place_of_the_folder_raises_before_training(
        self, program, tmp_path
    ):
        path = tmp_path / "file"
        path.touch()
        with pytest.raises(OSError, match="file"):
            program.fit(path)
        assert program.data.env.steps == 0
        assert names(tmp_path) == ["file"]


class TestBeside:
    def test_a_background_write_saves_a_copy(self, tmp_path, monkeypatch):
        go_on, write = threading.Event(), CheckpointFolder._write

        def write_late(*args):
            assert go_on.wait(60)
            return write(*args)

        monkeypatch.setattr(CheckpointFolder, "_write", write_late)
        folder, numbers = CheckpointFolder(tmp_path), np.zeros(2)
        folder.write_beside({"numbers": numbers})
        numbers += 1
        go_on.set()
        folder.wait()
        assert folder.newest().state["numbers"].tolist() == [0, 0]

    def test_the_end_of_fit_waits(self, program, tmp_path):
        before = threading.active_count()
        program.fit(tmp_path)
        assert threading.active_count() == before
        assert epochs_of(tmp_path) == [1, 2, 3]

    def test_a_fault_is_raised_at_the_next_checkpoint(
        self, program, tmp_path, monkeypatch
    ):
        def fail(*_):
            raise TypeError("a fault of the library")

        monkeypatch.setattr(CheckpointFolder, "_write", fail)
        with pytest.raises(TypeError, match="a fault of the library"):
            program.fit(tmp_path)


def test_strangers_in_the_folder(program, tmp_path):
    program.fit(tmp_path, epochs=2)
    for name in ("checkpoint-9.npz", "checkpoint-00000007.old.npz"):
        (tmp_path / name).touch()
    program.fit(tmp_path, epochs=3)
    newest = CheckpointFolder(tmp_path).newest()
    assert newest.path.stem == "checkpoint-00000002"
