"""Arrays that are read from their files slice by slice."""

import math
import mmap
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO
from typing import Any

import numpy as np

from keras_rl2.files.plain_files import require_file

_NPY = ".npy"
# For compressed arrays, which are read whole. Zeros are compressed to a
# thousandth.
_MOST_BYTES = 2**28
_MOST_EXPANSION = 100


class FileArray:
    """An array in a file, read by slices.

    It is not a memory map, since the pages that a map has touched count as
    memory of the process, up to the size of the file.

    Args:
        path: path. The file.
        offset: int. Position of its numbers, in bytes.
        shape: tuple of int. `[N, ...]`.
        dtype: NumPy dtype.

    Example:

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "a.npy")
    >>> np.save(path, np.arange(6).reshape(3, 2))
    >>> FileArray.open(path)[1:3]
    array([[2, 3],
           [4, 5]])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        offset: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self.path = os.fspath(path)
        self.offset = offset
        self.shape = shape
        self.dtype = dtype
        self._row = int(np.prod(shape[1:], dtype=np.int64))

    @classmethod
    def of(cls, array: np.memmap[Any, Any]) -> Any:
        """Returns the file behind a memory map, or the map if it is a view.

        Args:
            array: `np.memmap`.
        """
        whole = isinstance(array.base, mmap.mmap)
        if whole and array.flags.c_contiguous and array.filename is not None:
            return cls(array.filename, array.offset, array.shape, array.dtype)
        return array

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        start: int = 0,
        end: int | None = None,
    ) -> "FileArray":
        """Opens an `.npy` file, which may be part of another file.

        Args:
            path: path. The file.
            start: int. Its first byte. Defaults to `0`.
            end: int or None. The byte after its last; None for the end of the
                file. Defaults to `None`.

        Returns:
            `FileArray`.

        Raises:
            ValueError: If it is of another format, cut off, or holds objects.
        """
        require_file(path)
        with open(path, "rb") as file:
            file.seek(start)
            shape, fortran_order, dtype = _header(file, path)
            offset = file.tell()
            file.seek(0, os.SEEK_END)
            stop = file.tell() if end is None else end
        if dtype.hasobject or fortran_order or not shape:
            raise ValueError(
                "Expected an array of numbers for each step, in C order. "
                f"Received: {path} of dtype {dtype}, shape {shape}"
            )
        needed = math.prod(shape) * dtype.itemsize
        if offset + needed > stop:
            raise ValueError(
                f"Expected {needed} bytes of {shape} numbers. Received: "
                f"{path}, cut off after {stop - offset}"
            )
        return cls(path, offset, shape, dtype)

    def __len__(self) -> int:
        """Returns the length of the first axis."""
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Reads consecutive rows.

        Args:
            rows: slice, without a step.

        Returns:
            `[n, ...]`.
        """
        start, stop, _ = rows.indices(self.shape[0])
        count = max(stop - start, 0)
        numbers = np.fromfile(
            self.path,
            self.dtype,
            count * self._row,
            offset=self.offset + start * self._row * self.dtype.itemsize,
        )
        return numbers.reshape(count, *self.shape[1:])


def _header(
    file: IO[bytes], path: str | os.PathLike[str]
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Reads an array's header: shape, whether in Fortran order, and dtype."""
    try:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        header: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(file)
    except (ValueError, KeyError, EOFError) as error:
        raise ValueError(
            "Expected an array in the format of `np.save`. Received: "
            f"{path} ({error})"
        ) from error
    return header


def open_npz(path: Path) -> dict[str, Any]:
    """Opens the arrays of an `.npz` file.

    Uncompressed arrays stay in the file; compressed ones are read.

    Args:
        path: path.

    Returns:
        dict of arrays and `FileArray`s; `"observations.camera"` is the entry
        `"camera"` of a dict.

    Raises:
        ValueError: If it is not such a file, or holds objects.
    """
    arrays: dict[str, Any] = {}
    try:
        size = require_file(path)
        with zipfile.ZipFile(path) as archive:
            _check_packed(archive, size, path)
            for entry in archive.infolist():
                key = entry.filename.removesuffix(_NPY)
                if entry.compress_type == zipfile.ZIP_STORED:
                    arrays[key] = _stored_member(path, entry)
        with np.load(path, allow_pickle=False) as loaded:
            for key in loaded.files:
                if key not in arrays:
                    arrays[key] = _numbers(loaded, key, path)
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise ValueError(
            "Expected an .npz file in the format of `np.savez`. Received: "
            f"{path} ({error})"
        ) from error
    return _nested(arrays)


def _check_packed(archive: zipfile.ZipFile, size: int, path: Path) -> None:
    """Checks that arrays do not need far more memory than the file's bytes."""
    packed = [
        entry
        for entry in archive.infolist()
        if entry.compress_type != zipfile.ZIP_STORED
    ]
    total = sum(entry.file_size for entry in packed)
    if total > max(_MOST_BYTES, _MOST_EXPANSION * size):
        raise ValueError(
            f"Expected arrays that a file of {size:,} bytes can hold. "
            f"Received: {path}, with {total:,} bytes of them"
        )
    for entry in packed:
        with archive.open(entry) as member:
            shape, _, dtype = _header(member, path)
        needed = math.prod(shape) * dtype.itemsize
        if needed > entry.file_size:
            raise ValueError(
                f"Expected {needed:,} bytes of {shape} numbers. Received: "
                f"{entry.filename} of {path}, with {entry.file_size:,}"
            )


def open_npy_folder(path: Path) -> dict[str, Any]:
    """Opens a folder of `.npy` files, each named after its array.

    Args:
        path: path.

    Returns:
        dict; see `open_npz`.
    """
    files = sorted(path.glob(f"*{_NPY}"))
    return _nested({file.stem: FileArray.open(file) for file in files})


def _numbers(
    loaded: Mapping[str, np.ndarray], key: str, path: Path
) -> np.ndarray:
    """Reads a compressed array."""
    try:
        array: np.ndarray = loaded[key]
    except ValueError as error:
        raise ValueError(
            f"Expected arrays of numbers in {path}. Received: {key} ({error})"
        ) from error
    return array


def _stored_member(path: Path, entry: zipfile.ZipInfo) -> FileArray:
    """Returns an uncompressed member of an archive."""
    with open(path, "rb") as file:
        file.seek(entry.header_offset)
        header = file.read(30)
    if len(header) < 30 or header[:4] != b"PK\x03\x04":
        raise zipfile.BadZipFile(f"no header of {entry.filename}")
    # Lengths of the name and of the extra field, which may differ from the
    # directory.
    skipped = sum(
        int.from_bytes(header[at : at + 2], "little") for at in (26, 28)
    )
    start = entry.header_offset + 30 + skipped
    return FileArray.open(path, start, start + entry.file_size)


def _nested(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Makes trees of the arrays with dots in their names."""
    tree: dict[str, Any] = {}
    for key, array in arrays.items():
        *folders, last = key.split(".")
        branch = tree
        for folder in folders:
            branch = branch.setdefault(folder, {})
        branch[last] = array
    return {key: _with_tuples(branch) for key, branch in tree.items()}


def _with_tuples(branch: object) -> Any:
    """Makes tuples of dicts with the keys "0", "1" and so on."""
    if not isinstance(branch, dict):
        return branch
    inner = {key: _with_tuples(each) for key, each in branch.items()}
    counted = [str(index) for index in range(len(inner))]
    if sorted(inner) == sorted(counted):
        return tuple(inner[key] for key in counted)
    return inner
