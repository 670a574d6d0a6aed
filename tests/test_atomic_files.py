"""What was there stays, until what takes its place is whole."""

import pytest

from keras_rl2.atomic_files import replacing


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
