"""Arrays of HDF5 files of unknown origin, with nothing followed or run.

A file can name other files (external links, external and virtual storage) and
filters that the library would load from a folder; it can hold objects that are
more than numbers. All of these are refused before anything is read. The calls
are those of h5py's lower level: a Minari dataset has five arrays for each of
its episodes, and the upper level takes a tenth of a millisecond for each.
"""

import math
from typing import Any

import h5py
import numpy as np

# Those that every h5py has: deflate, shuffle, fletcher32, szip, nbit,
# scaleoffset and lzf.
_FILTERS = frozenset([1, 2, 3, 4, 5, 6, 32000])
# Of arrays that are packed, or were never written. Zeros become a thousandth.
_MOST_BYTES = 2**28
_MOST_EXPANSION = 100


class Hdf5Error(ValueError):
    """Something of a file that is not used, with words for people."""


def open_member(group: Any, name: str) -> Any:
    """Opens a group or an array of the file itself.

    Args:
        group: `h5py.h5g.GroupID`.
        name: str.

    Returns:
        `GroupID` or `DatasetID`.

    Raises:
        Hdf5Error: If it is missing, a link to elsewhere, or neither.
    """
    key = name.encode()
    if not group.links.exists(key):
        raise Hdf5Error(f"no {name}")
    kind = group.links.get_info(key).type
    if kind != h5py.h5l.TYPE_HARD:
        words = "an external" if kind == h5py.h5l.TYPE_EXTERNAL else "a soft"
        raise Hdf5Error(f"{words} link {name}, which is not followed")
    member = h5py.h5o.open(group, key)
    if isinstance(member, h5py.h5d.DatasetID):
        _check_storage(member, name)
    elif not isinstance(member, h5py.h5g.GroupID):
        raise Hdf5Error(f"{name}, which is neither a group nor an array")
    return member


def _check_storage(array: Any, name: str) -> None:
    """Refuses what is stored elsewhere, or needs more than numbers."""
    plist = array.get_create_plist()
    virtual = plist.get_layout() == h5py.h5d.VIRTUAL
    if virtual or plist.get_external_count():
        raise Hdf5Error(f"{name} stored in another file, which is not opened")
    filters = [plist.get_filter(i)[0] for i in range(plist.get_nfilters())]
    unknown = sorted(set(filters) - _FILTERS)
    if unknown:
        raise Hdf5Error(f"{name} packed with the filters {unknown}")
    declared = math.prod(array.shape) * array.dtype.itemsize
    if declared > max(_MOST_BYTES, _MOST_EXPANSION * array.get_storage_size()):
        raise Hdf5Error(
            f"{name} of {declared:,} bytes, of which "
            f"{array.get_storage_size():,} are in the file"
        )
    if array.dtype.kind not in "biuf":
        raise Hdf5Error(
            f"{name} of dtype {array.dtype}, not numbers (of pictures, Minari "
            "writes numbers with `jpeg_encoding=False`)"
        )


def names(group: Any) -> list[str]:
    """Returns the names of what a group holds.

    Args:
        group: `h5py.h5g.GroupID`.
    """
    return [name.decode() for name in group]


def read(array: Any, start: int, out: np.ndarray) -> None:
    """Reads rows into an array that is there.

    Args:
        array: `h5py.h5d.DatasetID`, `[N, ...]`.
        start: int. The first row.
        out: `[n, ...]`, contiguous. Floats are rounded to its dtype.
    """
    if start == 0 and len(out) == array.shape[0]:
        array.read(h5py.h5s.ALL, h5py.h5s.ALL, out)
        return
    space = array.get_space()
    rest = (0,) * (out.ndim - 1)
    space.select_hyperslab((start, *rest), out.shape)
    array.read(h5py.h5s.create_simple(out.shape), space, out)
