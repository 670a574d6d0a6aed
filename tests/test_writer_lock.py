"""One process writes to a folder, whoever else would like to."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from keras_rl2 import writer_lock
from keras_rl2.writer_lock import WriterLock
from support.full_disks import room_for

# A process that holds the lock until it is killed.
_HOLDER = """
import sys
from keras_rl2.writer_lock import WriterLock
lock = WriterLock(sys.argv[1])
lock.__enter__()
print("held", flush=True)
sys.stdin.read()
"""
DEAD = 2**22 + 1


@pytest.fixture(params=["flock", "lease"])
def kind(request, monkeypatch):
    """A system that has locks, and one that has none."""
    if request.param == "lease":
        monkeypatch.setattr(writer_lock, "flock", None)
    return request.param


@pytest.fixture
def lease(monkeypatch, tmp_path):
    """Returns what writes a lease of somebody else."""
    monkeypatch.setattr(writer_lock, "flock", None)
    path = tmp_path / "writer.lease"

    def of(**holder):
        path.write_text(json.dumps(holder))
        return path

    return of


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


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EINVAL])
def test_a_disk_without_locks(number, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(writer_lock, "flock", refuse)
    with WriterLock(tmp_path):
        assert [each.name for each in tmp_path.iterdir()] == ["writer.lease"]
        with refused(str(os.getpid())), WriterLock(tmp_path):
            pass


class TestAnotherProcess:
    @pytest.fixture
    def holder(self, tmp_path):
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, str(tmp_path)],
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


def test_a_forked_child_keeps_nothing_locked(tmp_path):
    """Of a killed parent it would keep out whoever goes on."""
    given, taken = os.pipe()
    lock = WriterLock(tmp_path).__enter__()
    child = os.fork()
    if not child:
        os.close(taken)
        os.read(given, 1)
        os._exit(0)
    try:
        # As the system does for a process that is killed.
        os.close(lock._descriptor)
        with WriterLock(tmp_path):
            pass
    finally:
        os.close(taken)
        os.close(given)
        os.waitpid(child, 0)
        writer_lock._descriptors.discard(lock._descriptor)


class TestLease:
    def test_of_another_machine(self, lease, tmp_path):
        lease(host="elsewhere", pid=DEAD, token="theirs")
        with refused(f"process {DEAD} on elsewhere"), WriterLock(tmp_path):
            pass

    def test_that_nobody_renews(self, lease, tmp_path):
        path = lease(host="elsewhere", pid=1, token="theirs")
        now = path.stat().st_mtime
        os.utime(path, (now - 200, now - 200))
        with refused("elsewhere"), WriterLock(tmp_path):
            pass
        os.utime(path, (now - 400, now - 400))
        with WriterLock(tmp_path) as lock:
            lock.check()
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("pid", [DEAD, os.getpid()], ids=["dead", "own"])
    def test_of_a_process_that_is_gone(self, pid, lease, tmp_path):
        """With the number of this one, too: containers count from 1."""
        lease(host=socket.gethostname(), pid=pid, token="theirs")
        with WriterLock(tmp_path) as lock:
            lock.check()

    def test_of_one_that_lives(self, lease, tmp_path):
        lease(host=socket.gethostname(), pid=os.getppid(), token="theirs")
        with refused(str(os.getppid())), WriterLock(tmp_path):
            pass

    def test_that_was_not_written_to_its_end(self, lease, tmp_path):
        lease().write_text('{"host": "els')
        with refused("process unknown"), WriterLock(tmp_path):
            pass

    def test_that_was_taken_over_meanwhile(self, lease, tmp_path):
        with WriterLock(tmp_path) as lock:
            path = lease(host="elsewhere", pid=7, token="theirs")
            with refused("process 7 on elsewhere"):
                lock.check()
        assert path.exists()

    def test_it_is_renewed(self, lease, tmp_path):
        path = lease(host="elsewhere", pid=1, token="theirs")
        os.utime(path, (0, 0))

        class Once:
            waited = []

            def wait(self, seconds):
                self.waited.append(seconds)
                return len(self.waited) > 1

        writer_lock._renew(path, Once())
        assert path.stat().st_mtime > 0
        assert Once.waited == [60.0, 60.0]


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

        monkeypatch.setattr(writer_lock.os, "open", refuse)
        monkeypatch.setattr("tempfile.mkdtemp", refuse)
        with pytest.raises(PermissionError, match="Permission") as raised:
            WriterLock(tmp_path).__enter__()
        assert raised.value.filename == str(tmp_path)
