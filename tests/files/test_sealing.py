"""A seal covers all of a file, and its own words."""

import zipfile

import numpy as np
import pytest

from keras_rl2.saving.sealing import is_sealed
from keras_rl2.saving.sealing import seal


@pytest.fixture
def path(tmp_path):
    """An archive of three megabytes, sealed."""
    path = tmp_path / "file.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("numbers", bytes(3 * 2**20))
    seal(path)
    return path


def check(path):
    with path.open("rb") as file:
        return is_sealed(file)


def test_a_bit_anywhere(path):
    content = path.read_bytes()
    for share in np.linspace(0.01, 0.99, 7):
        changed = bytearray(content)
        changed[int(share * len(content))] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ValueError, match="was changed after it was saved"):
            check(path)


def test_one_that_was_cut_off(path):
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"keras_rl2 sha256")])
    with pytest.raises(ValueError, match="changed after it was saved"):
        check(path)


def test_a_whole_file_and_one_without_a_seal(path, tmp_path):
    assert check(path)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("numbers", "1 2 3")
    assert not check(tmp_path / "other.zip")
