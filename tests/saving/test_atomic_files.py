"""An old file stays until its replacement is complete."""

import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import sys

import pytest

from keras_rl2.saving import atomic_files
from keras_rl2.saving.atomic_files import replacing
from support.full_disks import room_for


def write(path, text="new"):
    with replacing(path) as unfinished:
        unfinished.write_text(text, "utf-8")


def write_folder(path, text="new"):
    with replacing(path) as unfinished:
        unfinished.mkdir()
        (unfinished / "file").write_text(text, "utf-8")


def names(folder):
    return sorted(each.name for each in folder.iterdir())


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    return path


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "old").write_text("old")
    return path


def test_a_file_is_replaced(file):
    with replacing(file) as unfinished:
        assert unfinished.suffix == ".txt"
        unfinished.write_text("new")
        assert file.read_text() == "old"
    assert file.read_text() == "new"
    assert names(file.parent) == ["file.txt"]


def test_a_folder_is_replaced(folder):
    write_folder(folder)
    assert names(folder) == ["file"]
    assert names(folder.parent) == ["folder"]


def test_a_failed_write_leaves_the_old_file(file):
    def fail():
        with replacing(file) as unfinished:
            unfinished.write_text("half")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert file.read_text() == "old"
    assert names(file.parent) == ["file.txt"]


class TestWindows:
    """Operations that Windows refuses are refused here."""

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
        monkeypatch.setattr(atomic_files, "_TO_SYNC", os.O_RDWR)

    def test_files_and_folders(self, file, folder):
        write(file)
        write_folder(folder)
        assert file.read_text() == "new"
        assert names(folder) == ["file"]
        assert names(file.parent) == ["file.txt", "folder"]
        assert self.synced == 2


class TestOnTheDisk:
    """Data reaches the disk before a file or folder has its name."""

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
        write(path)
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

    @pytest.mark.parametrize("number", [errno.EIO, errno.EINVAL, errno.ENOTSUP])
    def test_a_disk_that_waits_for_files_only(
        self, tmp_path, monkeypatch, number
    ):
        path = tmp_path / "file"

        def refuse(descriptor, number=number):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", refuse)
        told = (
            pytest.raises(OSError, match=os.strerror(number))
            if number == errno.EIO
            else contextlib.nullcontext()
        )
        with told:
            write(path)
        assert path.exists() == (number != errno.EIO)
        path.unlink(missing_ok=True)


def test_an_unwritten_file_replaces_nothing(file):
    with replacing(file):
        pass
    assert file.read_text() == "old"


class TestKinds:
    def test_a_file_takes_no_folders_place(self, folder):
        with pytest.raises(IsADirectoryError):
            write(folder)
        assert (folder / "old").read_text() == "old"

    def test_a_folder_takes_no_files_place(self, file):
        with pytest.raises(NotADirectoryError):
            write_folder(file)
        assert file.read_text() == "old"

    def test_a_link_is_replaced_not_followed(self, file):
        path = file.with_name("link")
        path.symlink_to(file.name)
        write(path)
        assert not path.is_symlink()
        assert path.read_text() == "new"
        assert file.read_text() == "old"

    def test_permissions_of_the_old_file_are_kept(self, file):
        file.chmod(0o600)
        write(file)
        assert file.stat().st_mode & 0o777 == 0o600

    def test_any_name_is_possible(self, tmp_path):
        path = tmp_path / "a.replaced"
        for text in ("old", "new"):
            write_folder(path, text)
        assert (path / "file").read_text() == "new"

    def test_a_missing_folder_is_named(self, tmp_path):
        path = tmp_path / "nowhere" / "file"
        with pytest.raises(FileNotFoundError) as refused, replacing(path):
            pass
        assert refused.value.filename == str(path)


class TestKilled:
    def test_unfinished_folders_are_removed_a_day_later(self, tmp_path):
        left = [tmp_path / f".unfinished-{name}" for name in "abc"]
        for folder in left:
            folder.mkdir()
        (left[2] / "folder.replaced").mkdir()
        for folder in left[1:]:
            os.utime(folder, (0, 0))
        write(tmp_path / "file.txt")
        assert names(tmp_path) == [left[0].name, left[2].name, "file.txt"]

    def test_in_the_midst(self, file):
        code = (
            "import os, signal, sys\n"
            "from keras_rl2.saving.atomic_files import replacing\n"
            "with replacing(sys.argv[1]) as unfinished:\n"
            "    unfinished.write_text('half')\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        killed = subprocess.run([sys.executable, "-c", code, file])
        assert killed.returncode == -signal.SIGKILL
        assert file.read_text() == "old"
        assert len(names(file.parent)) == 2
        write(file)
        assert file.read_text() == "new"

    def test_links_of_that_name_are_left_alone(self, tmp_path):
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "text").write_text("mine")
        inside = tmp_path / "inside"
        inside.mkdir()
        (inside / ".unfinished-abcd").symlink_to(outside)
        os.utime(outside, (0, 0))
        write(inside / "file")
        assert names(outside) == ["text"]


def test_a_folder_that_cannot_be_renamed_back_is_kept(folder, monkeypatch):
    def refuse(*_):
        monkeypatch.setattr("os.rename", refuse)
        raise OSError("not now")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(OSError, match="not now"):
        write_folder(folder)
    (left,) = folder.parent.iterdir()
    assert (left / "folder.replaced" / "old").read_text() == "old"


def test_a_full_disk(file):
    for size in range(0, 100, 10):
        with room_for(size), pytest.raises(OSError, match="too large"):
            write(file, "n" * 100)
        assert file.read_text() == "old"
        assert names(file.parent) == ["file.txt"]
