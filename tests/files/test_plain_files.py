"""Files of strangers are read up to a size, and JSON up to a depth."""

import sys
import tracemalloc

import pytest

from keras_rl2.files import plain_files


def test_as_large_as_it_may_be(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(9))
    assert plain_files.read_bytes(path, 9) == bytes(9)
    with pytest.raises(ValueError, match="at most 8 bytes"):
        plain_files.read_bytes(path, 8)


@pytest.mark.parametrize(
    ("begin", "end"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")]
)
def test_as_deep_as_it_may_be(begin, end):
    def nested(levels):
        count = levels // (len(end))
        return f"{begin * count}0{end * count}".encode()

    # The number itself is a level.
    plain_files.parse_json(nested(98), "file")
    for levels in (102, 200_000):
        with pytest.raises(ValueError, match="at most 100 levels"):
            plain_files.parse_json(nested(levels), "file")


def test_a_level_too_deep():
    plain_files.parse_json(b"[" * 99 + b"0" + b"]" * 99, "file")
    with pytest.raises(ValueError, match="at most 100 levels"):
        plain_files.parse_json(b"[" * 100 + b"0" + b"]" * 100, "file")


def test_what_is_no_file(tmp_path):
    for path, words in ((tmp_path, "a folder"), ("/dev/zero", "a device")):
        with pytest.raises(ValueError, match=f"which is {words}"):
            plain_files.read_bytes(path)


def test_no_more_is_asked_for_than_there_is(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"ab")
    tracemalloc.start()
    try:
        assert plain_files.read_bytes(path, 2**31) == b"ab"
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only there is /proc")
def test_files_that_are_longer_than_they_say():
    assert b"MemTotal" in plain_files.read_bytes("/proc/meminfo")
    with pytest.raises(ValueError, match="at most 10 bytes"):
        plain_files.read_bytes("/proc/meminfo", 10)
