"""What was there stays, until what takes its place is whole."""

import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from keras_rl2.files import atomic_files
from keras_rl2.files.atomic_files import replacing
from support.full_disks import room_for


def test_a_file_is_replaced(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with replacing(path) as unfinished:
        assert unfinished.suffix == ".txt"
        unfinished.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [each.name for each in tmp_path.iterdir()] == ["file.txt"]


def test_a_folder_is_replaced(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").write_text("old")
    with replacing(path) as unfinished:
        (unfinished / "deeper").mkdir(parents=True)
        (unfinished / "deeper" / "new").write_text("new")
    assert (path / "deeper" / "new").read_text() == "new"
    assert not (path / "old").exists()
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_what_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def write():
        with replacing(path) as unfinished:
            unfinished.write_text("half")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write()
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["file.txt"]


def test_what_cannot_be_locked_leaves_nothing(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("too many open files")

    monkeypatch.setattr("keras_rl2.files.atomic_files._lock", refuse)
    with (
        pytest.raises(OSError, match="too many"),
        replacing(tmp_path / "file"),
    ):
        pass
    assert not list(tmp_path.iterdir())


class TestWindows:
    """What Windows refuses is refused here."""

    @pytest.fixture(autouse=True)
    def windows(self, monkeypatch):
        opened, synced = os.open, os.fsync

        def open_files_only(path, flags, *args, **kwargs):
            if os.path.isdir(path) and flags == os.O_RDWR:
                raise PermissionError(errno.EACCES, "a folder", str(path))
            return opened(path, flags, *args, **kwargs)

        def sync_what_is_written(descriptor):
            if not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_RDWR:
                raise OSError(errno.EBADF, "opened for reading")
            self.synced += 1
            return synced(descriptor)

        self.synced = 0
        monkeypatch.setattr(os, "open", open_files_only)
        monkeypatch.setattr(os, "fsync", sync_what_is_written)
        monkeypatch.setattr(atomic_files, "flock", None)
        monkeypatch.setattr(atomic_files, "_TO_SYNC", os.O_RDWR)

    def test_a_file(self, tmp_path):
        path = tmp_path / "file.txt"
        for text in ("old", "new"):
            with replacing(path) as unfinished:
                unfinished.write_text(text, "utf-8")
        assert path.read_text("utf-8") == "new"
        assert [each.name for each in tmp_path.iterdir()] == ["file.txt"]
        assert self.synced == 2

    def test_a_folder(self, tmp_path):
        path = tmp_path / "folder"
        for text in ("old", "new"):
            with replacing(path) as unfinished:
                unfinished.mkdir()
                (unfinished / "file.txt").write_text(text, "utf-8")
        assert (path / "file.txt").read_text("utf-8") == "new"
        assert [each.name for each in tmp_path.iterdir()] == ["folder"]
        assert self.synced == 2

    def test_what_is_a_day_old_is_abandoned(self, tmp_path):
        old, new = (tmp_path / f".unfinished-{name}" for name in ("old", "new"))
        for folder in (old, new):
            folder.mkdir()
        os.utime(old, (0, 0))
        with replacing(tmp_path / "file.txt") as unfinished:
            unfinished.write_text("new", "utf-8")
        assert {each.name for each in tmp_path.iterdir()} == {
            "file.txt",
            new.name,
        }


class TestOnTheDisk:
    """What is waited for, before a file or folder has its name, and after."""

    @pytest.fixture
    def waited(self, monkeypatch):
        """Numbers of files in the order of waiting, and of renaming."""
        events, sync, replace = [], os.fsync, os.replace

        def fsync(descriptor):
            events.append(os.fstat(descriptor).st_ino)
            sync(descriptor)

        def renamed(*paths):
            replace(*paths)
            events.append("renamed")

        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "replace", renamed)
        return events

    def test_a_file(self, waited, tmp_path):
        path = tmp_path / "file"
        with replacing(path) as unfinished:
            unfinished.write_text("new")
        expected = [path.stat().st_ino, "renamed", tmp_path.stat().st_ino]
        assert waited == expected

    def test_a_folder(self, waited, tmp_path):
        path = tmp_path / "folder"
        with replacing(path) as unfinished:
            (unfinished / "deeper").mkdir(parents=True)
            (unfinished / "deeper" / "file").write_text("new")
        whole = [path / "deeper" / "file", path / "deeper", path]
        own = [each.stat().st_ino for each in whole]
        assert waited == [*own, "renamed", tmp_path.stat().st_ino]

    def test_a_disk_that_waits_for_files_only(self, tmp_path, monkeypatch):
        path = tmp_path / "file"
        for number in (errno.EIO, errno.EINVAL, errno.ENOTSUP):

            def refuse(descriptor, number=number):
                raise OSError(number, os.strerror(number))

            monkeypatch.setattr(os, "fsync", refuse)
            told = (
                pytest.raises(OSError, match=os.strerror(number))
                if number == errno.EIO
                else contextlib.nullcontext()
            )
            with told, replacing(path) as unfinished:
                unfinished.write_text("new")
            assert path.exists() == (number != errno.EIO)
            path.unlink(missing_ok=True)


@pytest.mark.parametrize("is_locked", [False, True])
def test_a_folder_that_was_taken_for_an_abandoned_one(
    is_locked, tmp_path, monkeypatch
):
    """Just before it was locked, or just after: another one is made."""
    lock, removed = atomic_files._lock, []

    def late(folder):
        if removed:
            return lock(folder)
        removed.append(folder)
        descriptor = lock(folder) if is_locked else None
        folder.rmdir()
        return descriptor if is_locked else lock(folder)

    monkeypatch.setattr(atomic_files, "_lock", late)
    with replacing(tmp_path / "file") as unfinished:
        unfinished.write_text("new")
    assert len(removed) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_nothing_written_is_nothing_replaced(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with replacing(path):
        pass
    assert path.read_text() == "old"


def test_a_folder_that_cannot_be_renamed_comes_back(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").write_text("old")

    def refuse(*_):
        raise OSError("not now")

    monkeypatch.setattr("os.replace", refuse)
    with (
        pytest.raises(OSError, match="not now"),
        replacing(path) as unfinished,
    ):
        unfinished.mkdir()
    assert (path / "old").read_text() == "old"


class TestKinds:
    def test_a_file_takes_no_folders_place(self, tmp_path):
        path = tmp_path / "folder"
        path.mkdir()
        (path / "old").write_text("old")
        with (
            pytest.raises(IsADirectoryError) as refused,
            replacing(path) as unfinished,
        ):
            unfinished.write_text("new")
        assert refused.value.filename == str(path)
        assert (path / "old").read_text() == "old"

    def test_a_folder_takes_no_files_place(self, tmp_path):
        path = tmp_path / "file"
        path.write_text("old")
        with pytest.raises(NotADirectoryError), replacing(path) as unfinished:
            unfinished.mkdir()
        assert path.read_text() == "old"

    def test_a_link_is_replaced_not_followed(self, tmp_path):
        (tmp_path / "elsewhere").write_text("old")
        path = tmp_path / "link"
        path.symlink_to("elsewhere")
        with replacing(path) as unfinished:
            unfinished.write_text("new")
        assert not path.is_symlink()
        assert path.read_text() == "new"
        assert (tmp_path / "elsewhere").read_text() == "old"

    def test_who_may_read_stays(self, tmp_path):
        path = tmp_path / "file"
        path.write_text("old")
        path.chmod(0o600)
        with replacing(path) as unfinished:
            unfinished.write_text("new")
        assert path.stat().st_mode & 0o777 == 0o600

    def test_any_name_is_possible(self, tmp_path):
        path = tmp_path / "a.replaced"
        for text in ("old", "new"):
            with replacing(path) as unfinished:
                unfinished.mkdir()
                (unfinished / "text").write_text(text)
        assert (path / "text").read_text() == "new"

    def test_a_missing_folder_is_named(self, tmp_path):
        path = tmp_path / "nowhere" / "file"
        with pytest.raises(FileNotFoundError) as refused, replacing(path):
            pass
        assert refused.value.filename == str(path)


class TestKilled:
    def test_what_it_left_is_removed(self, tmp_path):
        left = tmp_path / ".unfinished-abcd"
        left.mkdir()
        (left / "file").write_text("half")
        with replacing(tmp_path / "other") as unfinished:
            assert not left.exists()
            # Of one that lives, nothing is taken away.
            with replacing(tmp_path / "another") as second:
                second.write_text("2")
            unfinished.write_text("1")
        names = sorted(each.name for each in tmp_path.iterdir())
        assert names == ["another", "other"]

    def test_a_folder_gets_its_name_back(self, tmp_path):
        left = tmp_path / ".unfinished-abcd"
        (left / "folder").mkdir(parents=True)
        (left / "folder.replaced").mkdir()
        (left / "folder.replaced" / "old").write_text("old")
        with replacing(tmp_path / "other"):
            pass
        assert (tmp_path / "folder" / "old").read_text() == "old"
        assert [each.name for each in tmp_path.iterdir()] == ["folder"]

    def test_in_the_midst(self, tmp_path):
        path = tmp_path / "file"
        path.write_text("old")
        code = (
            "import os, signal, sys\n"
            "from keras_rl2.files.atomic_files import replacing\n"
            "with replacing(sys.argv[1]) as unfinished:\n"
            "    unfinished.write_text('half')\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        killed = subprocess.run([sys.executable, "-c", code, path])
        assert killed.returncode == -signal.SIGKILL
        assert path.read_text() == "old"
        assert len(list(tmp_path.iterdir())) == 2
        with replacing(path) as unfinished:
            unfinished.write_text("new")
        assert path.read_text() == "new"
        assert list(tmp_path.iterdir()) == [path]

    def test_links_of_that_name_are_left_alone(self, tmp_path):
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "text").write_text("mine")
        (outside / "other.replaced").write_text("mine")
        inside = tmp_path / "inside"
        inside.mkdir()
        (inside / ".unfinished-abcd").symlink_to(outside)
        with replacing(inside / "file") as unfinished:
            unfinished.write_text("new")
        names = sorted(each.name for each in outside.iterdir())
        assert names == ["other.replaced", "text"]


def test_what_cannot_be_named_back_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").write_text("old")
    rename = os.rename

    def refuse(*_):
        monkeypatch.setattr("os.rename", refuse)
        raise OSError("not now")

    monkeypatch.setattr("os.replace", refuse)
    with (
        pytest.raises(OSError, match="not now"),
        replacing(path) as unfinished,
    ):
        unfinished.mkdir()
    (left,) = tmp_path.iterdir()
    assert (left / "folder.replaced" / "old").read_text() == "old"
    # The next one that writes there gives it its name.
    monkeypatch.setattr("os.rename", rename)
    with replacing(tmp_path / "other"):
        pass
    assert (path / "old").read_text() == "old"


def test_a_full_disk(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    for size in range(0, 100, 10):
        with (
            room_for(size),
            pytest.raises(OSError, match="too large"),
            replacing(path) as unfinished,
        ):
            unfinished.write_bytes(bytes(100))
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
