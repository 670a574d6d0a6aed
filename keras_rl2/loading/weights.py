"""The numbers of a saved agent, before Keras reads any."""

import io
import math
from typing import Any

import h5py

from keras_rl2.files import hdf5_arrays

# The least bytes of the file for a group or an array.
_LEAST_BYTES = 16
_MOST_LEVELS = 100


def check(content: bytes) -> int:
    """Raises an error for a file of weights with more than its numbers.

    Args:
        content: bytes. The HDF5 file.

    Returns:
        int: how many numbers it has.

    Raises:
        ValueError: If it is none, refers to other files, holds objects, or
            declares more numbers than it has.
    """
    most = len(content) // _LEAST_BYTES
    with h5py.File(io.BytesIO(content), "r") as file:
        sizes = [
            (math.prod(array.shape), array.dtype.itemsize)
            for array in _arrays(file.id, most)
        ]
    declared = sum(count * width for count, width in sizes)
    if declared > len(content):
        raise ValueError(
            f"its weights would be {declared:,} bytes, of {len(content):,} "
            "in the file"
        )
    return sum(count for count, _ in sizes)


def _arrays(file: h5py.h5f.FileID, most: int) -> list[Any]:
    """Returns all arrays of a file, none of which is anywhere else.

    A group may hold itself: its content has no end then.
    """
    found = []
    count = 0
    here = [h5py.h5g.open(file, b"/")]
    for _ in range(_MOST_LEVELS):
        inner = []
        for group in here:
            for name in hdf5_arrays.names(group):
                count += 1
                if count > most:
                    raise ValueError("weights that hold themselves")
                member = hdf5_arrays.open_member(group, name)
                if isinstance(member, h5py.h5d.DatasetID):
                    found.append(member)
                else:
                    inner.append(member)
        here = inner
        if not here:
            return found
    raise ValueError(f"weights more than {_MOST_LEVELS} levels deep")
