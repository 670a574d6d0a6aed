"""Files of strangers: sizes, depths and archives that are read, or refused."""

import re
import stat
import sys
import tracemalloc
import zipfile

import pytest

import keras_rl2 as rl
from keras_rl2.files import plain_files
from support.agents import KINDS
from support.agents import make_eager_agent
from support.agents import make_env


def test_as_large_as_it_may_be(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(9))
    assert plain_files.read_bytes(path, 9) == bytes(9)
    with pytest.raises(ValueError, match="at most 8 bytes"):
        plain_files.read_bytes(path, 8)


def test_json_as_deep_as_it_may_be():
    for begin, end in [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")]:

        def nested(levels, begin=begin, end=end):
            count = levels // (len(end))
            return f"{begin * count}0{end * count}".encode()

        # The number itself is a level.
        plain_files.parse_json(nested(98), "file")
        for levels in (102, 200_000):
            with pytest.raises(ValueError, match="at most 100 levels"):
                plain_files.parse_json(nested(levels), "file")
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


def test_missing_files_are_named(tmp_path):
    env = make_env()
    agent = make_eager_agent(KINDS["PPO"], env)
    path = tmp_path / "nowhere.bin"
    for read in (
        rl.load,
        rl.presets.read,
        rl.presets.read_space,
        rl.read_manifest,
        rl.PolicyFile,
        lambda path: rl.migrate.from_sb3(path, env),
        lambda path: agent.check_export(path, env),
    ):
        with pytest.raises(FileNotFoundError, match=re.escape(str(path))):
            read(path)
    assert list(tmp_path.iterdir()) == []


def member(name="a", packed=2000, **settings):
    """Returns what an archive says of a member that is as large as it may."""
    found = zipfile.ZipInfo(name)
    found.compress_size, found.file_size = packed, 16 * packed
    for key, value in settings.items():
        setattr(found, key, value)
    return found


def test_members_of_archives():
    size = 10_000
    check = plain_files.check_members
    check([member("a"), member("b"), member("c", 6000)], size, {})
    check([member(file_size=5)], size, {"a": 5})
    # Of little, whatever it is packed to.
    check([member(packed=1, file_size=2**14)], size, {})
    for members, words in [
        ([member(external_attr=stat.S_IFLNK << 16)], "a is no file"),
        ([member(flag_bits=1)], "a is encrypted"),
        ([member(file_size=32_001)], "a would be 32,001 bytes, of 2,000"),
        ([member(packed=1, file_size=2**14 + 1)], "a would be 16,385"),
        ([member(), member()], "two members of one name"),
        ([member("a", 6000), member("b", 6000)], "members overlap"),
    ]:
        with pytest.raises(ValueError, match=words):
            check(members, size, {})
    with pytest.raises(ValueError, match="a would be 6 bytes"):
        check([member(file_size=6)], size, {"a": 5})
