"""A disk that fails at any call costs the new checkpoint only."""

import builtins
import contextlib
import errno
import os
import pathlib

import numpy as np
import pytest

from keras_rl2.saving.checkpoint_folder import CheckpointFolder
from support.full_disks import content
from support.full_disks import room_for

MKDIR = os.mkdir
#: What a checkpoint is written by, in turn.
CALLS = [(os, "fsync"), (os, "replace"), (os, "mkdir"), (os, "open")]
CALLS += [(builtins, "open"), (pathlib.Path, "open")]
CALLS += [(np.lib.format, "write_array")]


def save(folder, number):
    """Writes a checkpoint with new rows of two logs."""
    log = folder.log
    for name in ("one", "other"):
        stop = 50 * number + 50
        # Whatever was noted as written, as a ring does.
        rows = np.arange(log.stop(name), stop)
        parts = [(stop - 9, {"row": rows[:-9]}), (stop, {"row": rows[-9:]})]
        log.append(name, parts)
    state = {"number": number, "weights": np.arange(500.0) + number}
    folder.write(state)


def check(directory, number):
    """Asserts that another process finds this checkpoint, all of it."""
    saved = CheckpointFolder(directory).newest()
    assert saved.state["number"] == number
    np.testing.assert_array_equal(
        saved.state["weights"], np.arange(500.0) + number
    )
    for name in ("one", "other"):
        rows = [each["row"] for each in saved.log.read(name)]
        np.testing.assert_array_equal(
            np.concatenate(rows), np.arange(50 * (number + 1))
        )


def unfinished(directory):
    return [*directory.rglob(".unfinished-*"), *directory.rglob("*.replaced")]


def is_writing(function, args):
    """Whether a call is one that a full disk could refuse."""
    if function is MKDIR:
        # `Path.mkdir(exist_ok=True)` asks for one that is there, too.
        return not os.path.isdir(args[0])
    if "open" not in function.__name__:
        return True
    how = args[1] if len(args) > 1 else "r"
    return "w" in how if isinstance(how, str) else bool(how & os.O_ACCMODE)


class Full:
    """Refuses the k-th of all calls that write, as a full disk does."""

    def __init__(self, monkeypatch, at):
        self.left = at
        self.is_met = False
        for owner, name in CALLS:
            monkeypatch.setattr(owner, name, self.counted(getattr(owner, name)))

    def counted(self, function):
        def call(*args, **kwargs):
            if is_writing(function, args):
                self.left -= 1
            if self.left < 0 and not self.is_met:
                self.is_met = True
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return function(*args, **kwargs)

        return call


def test_at_every_call(tmp_path, monkeypatch):
    """The old checkpoint stays, and the next one is complete."""
    at, is_met = 0, True
    while is_met:
        directory = tmp_path / str(at)
        folder = CheckpointFolder(directory)
        save(folder, 0)
        with monkeypatch.context() as patched:
            disk = Full(patched, at)
            with contextlib.suppress(OSError):
                save(folder, 1)
                # Whatever was met, was said.
                assert not disk.is_met
            is_met = disk.is_met
        assert not unfinished(directory)
        if is_met:
            check(directory, newest_of(directory))
            # There is room again: the same log, and two more.
            save(folder, newest_of(directory) + 1)
            number = newest_of(directory)
            save(folder, number + 1)
            check(directory, number + 1)
        at += 1
    # As many calls as that write: logs, arrays, names.
    assert at > 15
    check(directory, 1)


def newest_of(directory):
    return CheckpointFolder(directory).newest().state["number"]


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path):
    folder = CheckpointFolder(tmp_path)
    save(folder, 0)
    before = content(tmp_path)
    longest = max(map(len, before.values()))
    for size in np.linspace(0, longest - 1, 20).astype(int):
        with room_for(int(size)), pytest.raises(OSError, match="large"):
            save(folder, 1)
        assert not unfinished(tmp_path)
        check(tmp_path, 0)
        kept = content(tmp_path)
        assert before.items() <= kept.items()
    save(folder, 1)
    check(tmp_path, 1)
