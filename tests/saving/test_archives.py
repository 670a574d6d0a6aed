"""Damaged archives are found, wherever the damage is."""

import numpy as np
import pytest

from keras_rl2.saving.archives import check_archive
from keras_rl2.saving.archives import read_arrays
from keras_rl2.saving.archives import write_arrays

ARRAYS = {"numbers": np.arange(100_000), "few": np.arange(3)}


@pytest.fixture
def path(tmp_path):
    """A file of arrays."""
    path = tmp_path / "arrays.npz"
    write_arrays(path, ARRAYS)
    return path


def test_arrays_are_read_as_they_were_written(path):
    check_archive(path)
    np.testing.assert_equal(read_arrays(path), ARRAYS)


@pytest.mark.parametrize("share", np.linspace(0.01, 0.99, 7))
def test_a_changed_bit_of_the_content_is_found(path, share):
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"numbers\.npy was changed after"):
        check_archive(path)


def test_changed_bits_of_the_index_are_found_or_change_nothing(path):
    content = path.read_bytes()
    index = content.index(b"PK\x01\x02")
    found = 0
    for place in range(index, len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            try:
                check_archive(path)
            except ValueError:
                found += 1
            else:
                # An array may be missing in the index, and then in what reads.
                for name, array in read_arrays(path).items():
                    np.testing.assert_equal(array, ARRAYS[name])
    assert found > 100


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9999])
def test_a_file_that_was_cut_off_is_found(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="is damaged"):
        check_archive(path)
