"""Members of archives of strangers are refused before one is read."""

import stat
import zipfile

import pytest

from keras_rl2.files.plain_files import check_members

SIZE = 10_000


def member(name="a", packed=2000, **settings):
    """Returns what an archive says of a member that is as large as it may."""
    found = zipfile.ZipInfo(name)
    found.compress_size, found.file_size = packed, 16 * packed
    for key, value in settings.items():
        setattr(found, key, value)
    return found


def test_what_fits():
    check_members([member("a"), member("b"), member("c", 6000)], SIZE, {})
    check_members([member(file_size=5)], SIZE, {"a": 5})
    # Of little, whatever it is packed to.
    check_members([member(packed=1, file_size=2**14)], SIZE, {})


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([member(external_attr=stat.S_IFLNK << 16)], "a is no file"),
        ([member(flag_bits=1)], "a is encrypted"),
        ([member(file_size=32_001)], "a would be 32,001 bytes, of 2,000"),
        ([member(packed=1, file_size=2**14 + 1)], "a would be 16,385"),
        ([member(), member()], "two members of one name"),
        ([member("a", 6000), member("b", 6000)], "members overlap"),
    ],
)
def test_what_does_not(members, words):
    with pytest.raises(ValueError, match=words):
        check_members(members, SIZE, {})


def test_what_is_known_to_be_smaller():
    with pytest.raises(ValueError, match="a would be 6 bytes"):
        check_members([member(file_size=6)], SIZE, {"a": 5})
