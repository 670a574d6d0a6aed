"""One process writes to a folder, whoever else would like to."""

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys

import filelock
import pytest

from keras_rl2.files import writer_lock
from keras_rl2.files.writer_lock import WriterLock
from support.full_disks import room_for

# A process that holds the lock until it is killed.
_HOLDER = """
import os
import sys
from keras_rl2.files.writer_lock import WriterLock
lock = WriterLock(sys.argv[1])
lock.__enter__()
if sys.argv[2] == "False" or os.fork():
    print("held", flush=True)
sys.stdin.read()
"""


def no_flock(*_):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


@pytest.fixture(params=["flock", pytest.param("lease", marks=pytest.mark.slow)])
def kind(request, monkeypatch):
    """A disk that has locks, and one that has none."""
    if request.param == "lease":
        monkeypatch.setattr(fcntl, "flock", no_flock)
        # Long enough to be renewed in time by a machine with much to do.
        monkeypatch.setattr(writer_lock, "_LEASE_SECONDS", 1.0)
    return request.param


def refused(*words):
    return pytest.raises(ValueError, match="one writer.*" + ".*".join(words))


def test_a_second_writer_is_told_who_writes(kind, tmp_path):
    with (
        WriterLock(tmp_path) as held,
        refused(f"process {os.getpid()} on {socket.gethostname()}"),
        WriterLock(tmp_path),
    ):
        pass
    assert not held.is_held
    assert not list(tmp_path.iterdir())


def test_the_lock_of_another_user_stays(tmp_path, monkeypatch):
    """Who may write to the folder need not be able to open the lock of it."""

    def refuse(self):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with WriterLock(tmp_path):
        held = sorted(each.name for each in tmp_path.iterdir())
        monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
        with refused(f"process {os.getpid()} on"), WriterLock(tmp_path):
            pass
        assert sorted(each.name for each in tmp_path.iterdir()) == held


def test_other_errors_of_the_lock_are_raised(tmp_path, monkeypatch):
    def fail(self):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(filelock.FileLock, "acquire", fail)
    with pytest.raises(OSError, match="can be written to"):
        WriterLock(tmp_path).__enter__()
    assert not list(tmp_path.glob("writer.lease"))


def test_one_after_the_other(kind, tmp_path):
    directory = tmp_path / "deep" / "folder"
    for _ in range(2):
        with WriterLock(directory) as lock:
            lock.check()
            assert lock.is_held
            (directory / "file").touch()
    assert [each.name for each in directory.iterdir()] == ["file"]


def test_no_folder_is_left_that_nothing_was_put_into(kind, tmp_path):
    with WriterLock(tmp_path / "folder"):
        pass
    assert not list(tmp_path.iterdir())


def test_a_disk_without_locks(tmp_path, monkeypatch):
    for number in (errno.ENOSYS, errno.ENOLCK, errno.EINVAL):

        def refuse(*_, number=number):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", refuse)
        with WriterLock(tmp_path):
            names = {each.name for each in tmp_path.iterdir()}
            assert names == {"writer.lease", "writer.json"}
        assert not list(tmp_path.iterdir())


class TestAnotherProcess:
    @pytest.fixture(params=[False, True], ids=["alone", "with a child"])
    def holder(self, request, tmp_path):
        """Whose child, that it has forked, outlives it and keeps nothing."""
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, str(tmp_path), str(request.param)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()
        process.communicate()

    def test_it_is_named_until_it_is_killed(self, holder, tmp_path):
        with refused(f"process {holder.pid} on"), WriterLock(tmp_path):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert (tmp_path / "writer.lock").exists()
        with WriterLock(tmp_path):
            pass
        assert not list(tmp_path.iterdir())


class TestLease:
    @pytest.fixture(autouse=True)
    def lease(self, monkeypatch, tmp_path):
        monkeypatch.setattr(fcntl, "flock", no_flock)
        monkeypatch.setattr(writer_lock, "_LEASE_SECONDS", 0.2)
        return tmp_path / "writer.lease"

    def test_of_another_machine_that_is_gone(self, lease, tmp_path):
        with WriterLock(tmp_path):
            left = lease.read_text().replace(socket.gethostname(), "elsewhere")
        lease.write_text(left)
        with WriterLock(tmp_path) as lock:
            lock.check()
        assert not list(tmp_path.iterdir())

    def test_that_was_taken_over_meanwhile(self, lease, tmp_path):
        with WriterLock(tmp_path) as lock:
            own = lease.read_text()
            lease.unlink()
            lease.write_text(own.replace(socket.gethostname(), "elsewhere"))
            (tmp_path / "writer.json").write_text('{"pid": 7, "host": "there"}')
            with refused("process 7 on there"):
                lock.check()
        assert lease.exists()
        assert (tmp_path / "writer.json").exists()


class TestNoFolderToWriteTo:
    def test_a_file(self, kind, tmp_path):
        path = tmp_path / "file"
        path.touch()
        with (
            pytest.raises(OSError, match="that can be written to"),
            WriterLock(path),
        ):
            pass

    def test_a_full_disk(self, kind, tmp_path):
        with (
            room_for(10),
            pytest.raises(OSError, match="Received: File too large"),
            WriterLock(tmp_path / "folder"),
        ):
            pass
        assert not list(tmp_path.iterdir())

    def test_one_that_may_only_be_read(self, kind, tmp_path, monkeypatch):
        def refuse(*_, **__):
            raise PermissionError(errno.EACCES, "Permission denied", "x")

        monkeypatch.setattr("tempfile.mkdtemp", refuse)
        with pytest.raises(PermissionError, match="Permission") as raised:
            WriterLock(tmp_path).__enter__()
        assert raised.value.filename == str(tmp_path)
