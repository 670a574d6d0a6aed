"""Files that are written once, and noted once something refers to them."""

import numpy as np
import pytest

from keras_rl2.saving.checkpoint_folder import SegmentLog
from support.full_disks import room_for


@pytest.fixture
def log(tmp_path):
    """A log of the rows 0 to 4, and 5 to 9."""
    log = SegmentLog(tmp_path / "segments")
    for label in range(2):
        add(log, label * 5, label * 5 + 5)
        log.segments = log.write(str(label))
    return log


def add(log, first, stop, name="rows"):
    log.append(name, [(stop, {"row": np.arange(first, stop)})])


def rows(log, name="rows"):
    return np.concatenate([each["row"] for each in log.read(name)]).tolist()


def test_rows_are_added(log):
    assert log.stop("rows") == 10
    assert rows(log) == [*range(10)]
    log.check()


def test_a_log_without_segments_is_empty():
    assert SegmentLog("nowhere").stop("rows") == 0


def test_another_process_continues_the_log(log):
    again = SegmentLog(log.directory, log.segments)
    add(again, 10, 12)
    again.segments = again.write("2")
    assert rows(again) == [*range(12)]
    # What the first one refers to is as it was.
    assert rows(log) == [*range(10)]


def test_old_rows_are_forgotten(log):
    log.forget("rows", 5)
    assert rows(log) == [*range(10)]
    log.forget("rows", 6)
    assert rows(log) == [5, 6, 7, 8, 9]
    log.forget("another", 5)
    assert log.stop("another") == 0


def test_logs_that_nothing_was_added_to_are_left_out(log):
    add(log, 0, 3, "another")
    log.segments = log.write("2")
    assert log.segments.keys() == {"another"}


def test_rows_of_an_unaccepted_segment_are_dropped(log):
    add(log, 10, 12)
    log.write("2")
    assert log.stop("rows") == 10
    # To the same file, as nothing refers to it.
    add(log, 10, 15)
    log.segments = log.write("2")
    assert rows(log) == [*range(15)]
    log.check()


def test_a_full_disk(log):
    add(log, 10, 12)
    with room_for(10), pytest.raises(OSError, match="large"):
        log.write("2")
    assert rows(log) == [*range(10)]
    assert len(list(log.directory.iterdir())) == 2
    # Nothing of it is left to be written the next time.
    assert log.write("2") == {}


def test_damage_is_found(log):
    file = log.directory / log.segments["rows"][0][0]
    content = file.read_bytes()

    def refused():
        return pytest.raises(ValueError, match=r"damaged|missing")

    for damaged in (content[:-1], bytes([content[0] ^ 1]) + content[1:]):
        file.write_bytes(damaged)
        with refused():
            log.check()
    file.unlink()
    with refused():
        log.check()
