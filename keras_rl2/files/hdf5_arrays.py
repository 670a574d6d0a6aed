"""Arrays of untrusted HDF5 files: no link is followed, no code is run.

A file can name other files (external links, external and virtual storage) and
filters that the library would load from a folder; it can hold objects besides
numbers. All of these raise an error before anything is read. The calls use
h5py's low-level API: a Minari dataset has five arrays in each of its episodes,
and opening them takes half as long as with the high-level API.
"""

import math
from typing import Any

import h5py
import numpy as np

# The filters of every h5py: deflate, shuffle, fletcher32, szip, nbit,
# scaleoffset and lzf.
_FILTERS = frozenset([1, 2, 3, 4, 5, 6, 32000])
# For compressed arrays, or arrays never written. Zeros are compressed to a
# thousandth.
_MOST_BYTES = 2**28
_MOST_EXPANSION = 100


class Hdf5Error(ValueError):
    """A part of a file that cannot be used; the message names it."""


def open_member(group: h5py.h5g.GroupID, path: str) -> Any:
    """Opens a group or an array of the file itself.

    Args:
        group: `h5py.h5g.GroupID`.
        path: str. Names of groups and of the member, separated by `/`.

    Returns:
        `GroupID` or `DatasetID`.

    Raises:
        Hdf5Error: If a part of the path is missing, is a link to elsewhere, or
            is neither a group nor an array of numbers.
    """
    member = group
    for name in path.split("/"):
        key = name.encode()
        is_group = isinstance(member, h5py.h5g.GroupID)
        if not is_group or not member.links.exists(key):
            raise Hdf5Error(f"no {path}")
        kind = member.links.get_info(key).type
        if kind != h5py.h5l.TYPE_HARD:
            words = (
                "an external" if kind == h5py.h5l.TYPE_EXTERNAL else "a soft"
            )
            raise Hdf5Error(f"{words} link {path}, which is not followed")
        member = h5py.h5o.open(member, key)
    if isinstance(member, h5py.h5d.DatasetID):
        _check_storage(member, path)
    elif not isinstance(member, h5py.h5g.GroupID):
        raise Hdf5Error(f"{path}, which is neither a group nor an array")
    return member


def _check_storage(array: h5py.h5d.DatasetID, path: str) -> None:
    """Raises an error for arrays stored elsewhere, or not of plain numbers."""
    plist = array.get_create_plist()
    virtual = plist.get_layout() == h5py.h5d.VIRTUAL
    if virtual or plist.get_external_count():
        raise Hdf5Error(f"{path} stored in another file, which is not opened")
    filters = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
    unknown = sorted(set(filters) - _FILTERS)
    if unknown:
        raise Hdf5Error(f"{path} compressed with the filters {unknown}")
    declared = math.prod(array.shape) * array.dtype.itemsize
    if declared > max(_MOST_BYTES, _MOST_EXPANSION * array.get_storage_size()):
        raise Hdf5Error(
            f"{path} of {declared:,} bytes, of which "
            f"{array.get_storage_size():,} are in the file"
        )
    if array.dtype.kind not in "biuf":
        raise Hdf5Error(
            f"{path} of dtype {array.dtype}, not numbers (for images, Minari "
            "writes numbers with `jpeg_encoding=False`)"
        )


def names(group: h5py.h5g.GroupID) -> list[str]:
    """Returns the names of the members of a group.

    Args:
        group: `h5py.h5g.GroupID`.
    """
    return [name.decode() for name in group]


def read(
    array: h5py.h5d.DatasetID, start: int = 0, stop: int | None = None
) -> np.ndarray:
    """Reads rows of an array.

    Args:
        array: `h5py.h5d.DatasetID`, `[N, ...]`.
        start: int. The first row. Defaults to `0`.
        stop: int or None. The row to stop at; None for the end. Defaults to
            `None`.

    Returns:
        `[stop - start, ...]`, of the dtype in the file.
    """
    if start == 0 and stop in (None, *array.shape[:1]):
        out = np.empty(array.shape, array.dtype)
        array.read(h5py.h5s.ALL, h5py.h5s.ALL, out)
        return out
    rows, *rest = array.shape
    stop = rows if stop is None else stop
    out = np.empty((stop - start, *rest), array.dtype)
    space = array.get_space()
    space.select_hyperslab((start, *[0] * len(rest)), out.shape)
    array.read(h5py.h5s.create_simple(out.shape), space, out)
    return out
