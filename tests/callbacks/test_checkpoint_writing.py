"""Checkpoints are written beside training, by one process, or said to fail."""

import errno
import fcntl
import os
import pathlib
import threading

import keras
import numpy as np
import pytest

import keras_rl2 as rl
from keras_rl2.callbacks.checkpoint_writer import CheckpointWriter
from keras_rl2.files.checkpoint_folder import CheckpointFolder
from keras_rl2.files.writer_lock import WriterLock
from support.clocks import Clock
from support.full_disks import room_for


class Program:
    """Makes agent and data, and trains them."""

    def __init__(self):
        self.data = rl.RolloutDataset("CartPole-v1", horizon=8, seed=0)
        self.agent = rl.A2C.for_env("CartPole-v1", hidden=(4,), seed=0)
        self.agent.compile(run_eagerly=True)

    def fit(self, directory, *callbacks, epochs=3, **settings):
        settings = {"every_steps": 1, **settings}
        checkpoint = rl.callbacks.Checkpoint(directory, **settings)
        return self.agent.fit(
            self.data,
            epochs=epochs,
            callbacks=[*callbacks, checkpoint],
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
    return [state["position"]["epoch"] for state in states]


class TestWhen:
    def test_as_soon_as_so_many_steps_are_taken(self, program, tmp_path):
        def set_steps(epoch, logs):
            program.agent.env_steps = 10 * (epoch + 1)

        steps = keras.callbacks.LambdaCallback(on_epoch_end=set_steps)
        program.fit(tmp_path, steps, epochs=5, every_steps=20, keep=9)
        assert epochs_of(tmp_path) == [2, 4, 5]

    def test_as_soon_as_so_many_seconds_are_over(self, program, tmp_path):
        clock = Clock()
        clock.now = 1000.0

        def pass_time(epoch):
            clock.now += 10.0

        program.fit(
            tmp_path,
            at_epoch_begin(pass_time),
            epochs=5,
            every_steps=None,
            every_seconds=20.0,
            clock=clock,
            keep=9,
        )
        assert epochs_of(tmp_path) == [2, 4, 5]


class TestOneWriter:
    def test_a_second_one_is_refused(self, program, tmp_path):
        with (
            WriterLock(tmp_path),
            pytest.raises(ValueError, match=f"process {os.getpid()} on"),
        ):
            program.fit(tmp_path)
        assert program.data.env.steps == 0
        program.fit(tmp_path)

    def test_others_do_not_remove_it(self, program, tmp_path):
        other = Program()

        def clear(epoch):
            with pytest.raises(ValueError, match="one writer at a time"):
                CheckpointFolder(tmp_path).clear()
            with pytest.raises(ValueError, match="one writer at a time"):
                other.fit(tmp_path)

        program.fit(tmp_path, at_epoch_begin(clear))
        assert other.data.env.steps == 0

    def test_ctrl_c_waits_before_it_is_given_back(
        self, program, tmp_path, monkeypatch
    ):
        given_back, leave, order = threading.Event(), WriterLock.__exit__, []

        def give_back(*args):
            given_back.set()
            leave(*args)

        def pass_on(path):
            # Longer than it takes where nobody waits.
            order.append(given_back.wait(0.2))

        def interrupt(epoch):
            if epoch == 2:
                raise KeyboardInterrupt

        monkeypatch.setattr(WriterLock, "__exit__", give_back)
        with pytest.raises(KeyboardInterrupt):
            program.fit(tmp_path, at_epoch_begin(interrupt), after_save=pass_on)
        assert order == [False, False]
        assert "writer.lock" not in names(tmp_path)

    def test_a_lease_that_was_taken_over_ends_the_run(
        self, program, tmp_path, monkeypatch
    ):
        def no_flock(*_):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(fcntl, "flock", no_flock)
        program.fit(tmp_path, epochs=1)
        folder = CheckpointFolder(tmp_path)
        # The same, of a run that was to go on.
        folder.write(folder.newest().state)
        assert names(tmp_path) == [f"checkpoint-0000000{n}" for n in range(2)]
        lease = tmp_path / "writer.lease"

        def take_over(epoch):
            own = lease.read_text()
            lease.unlink()
            lease.write_text(own.replace("hostname", "x").replace("\n", "9\n"))

        with pytest.raises(ValueError, match="one writer at a time"):
            program.fit(tmp_path, at_epoch_begin(take_over))
        # Nor is anything noted in what is somebody else's by now.
        assert (folder.newest().number, folder.newest().ended) == (1, None)


class TestNoFolderToWriteTo:
    def test_it_is_said_before_training(self, program, tmp_path):
        path = tmp_path / "file"
        path.touch()
        with pytest.raises(OSError, match="that can be written to"):
            program.fit(path)
        with room_for(10), pytest.raises(OSError, match="File too large"):
            program.fit(tmp_path / "folder")
        assert program.data.env.steps == 0
        assert names(tmp_path) == ["file"]


class TestBeside:
    def test_what_is_written_is_a_copy(self, tmp_path, monkeypatch):
        go_on, write = threading.Event(), CheckpointFolder.write_parts

        def write_late(*args):
            assert go_on.wait(60)
            return write(*args)

        monkeypatch.setattr(CheckpointFolder, "write_parts", write_late)
        writer, numbers = (
            CheckpointWriter(tmp_path, 3, None, Clock()),
            np.zeros(2),
        )
        with writer.alone():
            writer.write_beside({"numbers": numbers})
            numbers += 1
            go_on.set()
            writer.wait()
        assert writer.newest().state["numbers"].tolist() == [0, 0]

    def test_the_end_of_fit_waits(self, program, tmp_path):
        before = threading.active_count()
        program.fit(tmp_path)
        assert threading.active_count() == before
        assert CheckpointFolder(tmp_path).newest().number == 2

    def test_a_fault_is_raised_at_the_next_step(
        self, program, tmp_path, monkeypatch
    ):
        def fail(*_):
            raise TypeError("a fault of the library")

        monkeypatch.setattr(CheckpointFolder, "write_parts", fail)
        with pytest.raises(TypeError, match="a fault of the library"):
            program.fit(tmp_path)


class TestAfterSave:
    def test_what_it_raises_is_a_warning(self, program, tmp_path):
        def refuse(path):
            raise ConnectionError("no route to the store")

        with pytest.warns(UserWarning, match="`after_save` failed") as warned:
            program.fit(tmp_path, epochs=2, after_save=refuse)
        texts = [str(each.message) for each in warned]
        assert sum("ConnectionError: no route" in text for text in texts) == 2
        assert CheckpointFolder(tmp_path).newest().number == 1

    def test_of_one_that_is_asked_for(self, program, tmp_path):
        given, paths = [], []

        def pass_on(path):
            with pytest.raises(ValueError, match="one writer"):
                WriterLock(tmp_path).__enter__()
            given.append(threading.current_thread())
            # It is whole.
            paths.append(CheckpointFolder(tmp_path).read(path).path)

        checkpoint = rl.callbacks.Checkpoint(tmp_path, after_save=pass_on)
        program.agent.fit(program.data, callbacks=[checkpoint], verbose=0)
        checkpoint.save(1)
        assert [each is threading.main_thread() for each in given] == [0, 1]
        assert [each.name for each in paths] == names(tmp_path)


class Disk:
    """Refuses what is written in some epochs, and lets time go by."""

    def __init__(self, monkeypatch, full, seconds):
        self.clock = Clock()
        self.epoch = 0
        write = np.savez

        def savez(*args, **kwargs):
            if self.epoch in full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write(*args, **kwargs)

        def begin(epoch):
            # After the checkpoint of this epoch was begun.
            for thread in threading.enumerate():
                if thread.name == "checkpoint":
                    thread.join()
            self.epoch = epoch + 1
            self.clock.now += seconds

        monkeypatch.setattr(np, "savez", savez)
        self.callback = at_epoch_begin(begin)


class TestFailures:
    def test_an_hour_of_them_ends_the_run(self, program, tmp_path, monkeypatch):
        disk = Disk(monkeypatch, full=range(3, 99), seconds=900.0)
        with (
            pytest.raises(OSError, match="within an hour: make room") as raised,
            pytest.warns(UserWarning, match="training goes on") as warned,
        ):
            program.fit(tmp_path, disk.callback, epochs=20, clock=disk.clock)
        # At 0 s, 900 s, ..., 3600 s.
        assert len(warned) == 5
        assert "No space left" in str(raised.value)
        assert "checkpoint-00000001" in raised.value.__notes__[-1]
        monkeypatch.undo()
        assert program.fit(tmp_path, epochs=4).epoch == [0, 1, 2, 3]

    def test_room_in_between_is_enough(self, program, tmp_path, monkeypatch):
        full = {*range(2, 5), *range(6, 9)}
        disk = Disk(monkeypatch, full, seconds=1200.0)
        with pytest.warns(UserWarning, match="training goes on") as warned:
            program.fit(tmp_path, disk.callback, epochs=10, clock=disk.clock)
        assert len(warned) == 6
        assert (
            CheckpointFolder(tmp_path).newest().state["position"]["epoch"] == 10
        )

    def test_it_is_not_tried_again_before_it_is_time(
        self, program, tmp_path, monkeypatch
    ):
        disk = Disk(monkeypatch, full=range(99), seconds=10.0)
        with pytest.warns(UserWarning, match="training goes on") as warned:
            program.fit(
                tmp_path,
                disk.callback,
                epochs=6,
                every_steps=None,
                every_seconds=20.0,
                clock=disk.clock,
            )
        # Of epochs 2 and 4, and the last one.
        assert len(warned) == 3


def test_strangers_in_the_folder(program, tmp_path):
    """Names that are alike, and a file that lies elsewhere."""
    program.fit(tmp_path, epochs=2)
    for name in (
        "checkpoint-9",
        "checkpoint-00000007.old",
        "checkpoint-\u00b2",
    ):
        (tmp_path / name).mkdir()
    program.fit(tmp_path, epochs=3)
    newest = CheckpointFolder(tmp_path).newest()
    assert newest.path.name == "checkpoint-00000002"
    moved = tmp_path / "elsewhere.npz"
    (newest.path / "arrays.npz").rename(moved)
    (newest.path / "arrays.npz").symlink_to(moved)
    with pytest.warns(UserWarning, match=r"arrays\.npz is a link"):
        assert CheckpointFolder(tmp_path).newest().number == 1


def test_a_link_with_the_name_of_one(program, tmp_path):
    program.fit(tmp_path, epochs=2)
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "checkpoint-00000001").rename(elsewhere)
    (tmp_path / "checkpoint-00000001").symlink_to(elsewhere)
    with pytest.warns(UserWarning, match="00000001 is a link"):
        program.fit(tmp_path, epochs=5, keep=1)
    assert isinstance(elsewhere, pathlib.Path)
    assert (elsewhere / "manifest.json").exists()
    assert CheckpointFolder(tmp_path).newest().state["position"]["epoch"] == 5
