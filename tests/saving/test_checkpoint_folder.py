"""A checkpoint is read as it was written, or not at all."""

import pathlib
import random
import warnings

import numpy as np
import pytest

from keras_rl2.saving import checkpoint_folder
from keras_rl2.saving.checkpoint_folder import CheckpointFolder
from support.full_disks import content


def write(folder, number):
    """Writes a checkpoint with rows in a log beside."""
    rows = np.arange(5) + 5 * number
    folder.log.append("rows", [(5 * number + 5, {"row": rows})])
    folder.write({"number": number, "weights": np.full((3, 4), float(number))})
    return folder.paths()[-1]


def fill(directory, count=3, keep=3):
    """Returns a folder of some checkpoints."""
    folder = CheckpointFolder(directory, keep)
    for number in range(count):
        write(folder, number)
    return folder


def check(saved, number):
    """Asserts that a checkpoint is the one of that number, all of it."""
    assert saved.state["number"] == number
    np.testing.assert_array_equal(
        saved.state["weights"], np.full((3, 4), number)
    )
    rows = np.concatenate([each["row"] for each in saved.log.read("rows")])
    np.testing.assert_array_equal(rows, np.arange(5 * number + 5))


def own_files(directory):
    """Returns a folder and the files of its newest checkpoint alone."""
    folder = fill(directory)
    segment = directory / "segments" / "rows-00000002.npz"
    return folder, [folder.paths()[-1], segment]


def test_reading_and_clearing_make_no_folder(tmp_path):
    folder = CheckpointFolder(tmp_path / "deep" / "folder")
    assert folder.newest() is None
    assert folder.paths() == []
    folder.clear()
    assert not list(tmp_path.iterdir())


def test_write_and_read(tmp_path):
    folder = fill(tmp_path / "deep" / "folder")
    for number, path in enumerate(folder.paths()):
        check(folder.read(path), number)
    saved = folder.newest()
    check(saved, 2)
    assert saved.path == folder.paths()[-1]


def test_the_newest_checkpoints_are_kept(tmp_path):
    folder = fill(tmp_path, 5, keep=2)
    assert [each.stem[-1] for each in folder.paths()] == ["3", "4"]
    # All rows are needed still.
    assert len(list((tmp_path / "segments").iterdir())) == 5
    folder.log.forget("rows", 20)
    for number in (5, 6):
        write(folder, number)
    names = sorted(each.name for each in (tmp_path / "segments").iterdir())
    assert [each[-5] for each in names] == ["3", "4", "5", "6"]


def test_a_checkpoint_that_cannot_be_removed_is_removed_later(
    tmp_path, monkeypatch
):
    fill(tmp_path, 2, keep=1)

    def refuse(path, **_):
        raise PermissionError("somebody reads it")

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "unlink", refuse)
        fill(tmp_path, 1, keep=1)
    folder = CheckpointFolder(tmp_path, keep=1)
    assert len(folder.paths()) == 2
    fill(tmp_path, 1, keep=1)
    assert len(folder.paths()) == 1


def test_rows_of_the_one_before_stay(tmp_path):
    """The newest checkpoint does not refer to these rows."""
    folder = CheckpointFolder(tmp_path, keep=2)
    first = write(folder, 0)
    folder.log.forget("rows", 6)
    write(folder, 1)
    check(folder.read(first), 0)


def test_numbers_of_more_digits_are_newer(tmp_path):
    folder = fill(tmp_path, 1)
    folder.paths()[0].rename(tmp_path / "checkpoint-99999999.npz")
    write(folder, 1)
    assert folder.newest().path.stem == "checkpoint-100000000"


def test_numbers_of_checkpoints_continue_in_another_process(tmp_path):
    fill(tmp_path, 2)
    folder = CheckpointFolder(tmp_path)
    folder.log = folder.newest().log
    assert write(folder, 2).stem == "checkpoint-00000002"
    check(folder.newest(), 2)


def test_other_folders_than_checkpoints_are_kept(tmp_path):
    for name in ("checkpoint-mine", "notes"):
        (tmp_path / name).mkdir()
    folder = fill(tmp_path, 4, keep=1)
    assert len(folder.paths()) == 1
    folder.clear()
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "checkpoint-mine",
        "notes",
    ]


def test_a_state_that_is_no_plain_data_writes_nothing(tmp_path):
    folder = CheckpointFolder(tmp_path / "folder")
    with pytest.raises(TypeError):
        folder.write({"agent": object()})
    assert not list(tmp_path.iterdir())


def test_flipped_bits_are_found_or_change_nothing(tmp_path):
    """The bits are in any file of the newest checkpoint.

    The rows of those before are their own, and no flip is in them.
    """
    folder, own = own_files(tmp_path)
    whole = {file: file.read_bytes() for file in own}
    generator, found = random.Random(0), 0
    for attempt in range(100):
        # Each file in turn: the segment is the smallest.
        file = own[attempt % len(own)]
        damaged = bytearray(whole[file])
        bit = 1 << generator.randrange(8)
        damaged[generator.randrange(len(damaged))] ^= bit
        file.write_bytes(damaged)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            saved = folder.newest()
            check(saved, 1 if caught else 2)
        assert all("is skipped" in str(each.message) for each in caught)
        file.write_bytes(whole[file])
        found += bool(caught)
    assert found > 50


def test_rows_that_all_share(tmp_path):
    folder = fill(tmp_path)
    first = tmp_path / "segments" / "rows-00000000.npz"
    first.write_bytes(first.read_bytes()[:-1])
    # Of all of them, as those after it refer to it, too.
    with (
        pytest.warns(UserWarning, match="is skipped"),
        pytest.raises(
            ValueError, match=r"intact checkpoint in .* 3 damaged ones"
        ),
    ):
        folder.newest()


def test_files_that_are_missing_or_cut(tmp_path):
    folder, own = own_files(tmp_path)
    for file in own:
        whole = file.read_bytes()
        for changed in (b"", whole[: len(whole) // 2]):
            file.write_bytes(changed)
            with pytest.warns(UserWarning, match="is skipped"):
                check(folder.newest(), 1)
            file.write_bytes(whole)
    own[-1].unlink()
    with pytest.warns(UserWarning, match="is missing"):
        check(folder.newest(), 1)


def test_a_damaged_one_is_not_written_over(tmp_path):
    folder = fill(tmp_path)
    folder.paths()[-1].write_text("{}")
    with pytest.warns(UserWarning, match="is skipped"):
        folder.log = folder.newest().log
    write(folder, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(folder.newest(), 2)
    assert folder.paths()[-1].stem == "checkpoint-00000003"


def test_all_damaged_is_no_beginning(tmp_path):
    folder = fill(tmp_path, 1)
    folder.paths()[0].write_bytes(b"")
    before = content(tmp_path)
    with pytest.raises(ValueError, match="remove the folder to begin anew"):
        folder.newest()
    assert content(tmp_path) == before


def test_an_unreadable_disk_is_no_damage(tmp_path, monkeypatch):
    folder = fill(tmp_path)

    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(checkpoint_folder.json, "loads", refuse)
    with pytest.raises(OSError, match="Input/output"):
        folder.newest()
