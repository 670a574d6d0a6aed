"""Seals on the files of saved agents and arrays, which detect damage.

A seal is the comment of the zip archive, at the end of the file: JSON with the
library, its version, the version of the format, and the SHA-256 of the whole
file, computed with 64 zeros in place of the hash. Thus it also covers headers
and directory, unlike the checksum of a member. It is not a further member,
since Keras would then unpack the archive into a folder at each load; Keras
ignores the comment. It is not a signature: it shows damage, but not the author.
"""

import hashlib
import json
import os
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO
from typing import Any
from typing import BinaryIO

import numpy as np

from keras_rl2.saving.atomic_files import replacing
from keras_rl2.version import __version__

# Of arrays, or of those with a method `chunks` that yields their rows.
Arrays = Mapping[str, Any]

_LIBRARY = "keras_rl2"
_FORMAT = 1
_EMPTY = "0" * 64
# The last field of the record that ends an archive: the comment's length.
_LENGTH = struct.Struct("<H")


def seal(path: str | os.PathLike[str]) -> None:
    """Seals an archive.

    Args:
        path: str or path. A zip archive, such as a `.keras` file.

    Raises:
        OSError: If it cannot be written.

    Example:

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "agent.keras")
    >>> with zipfile.ZipFile(path, "w") as archive:
    ...     archive.writestr("config.json", "{}")
    >>> seal(path)
    >>> with open(path, "rb") as file:
    ...     is_sealed(file)
    True
    """
    with zipfile.ZipFile(path, "a") as archive:
        # In its final length, which the hash includes.
        archive.comment = _comment(_EMPTY)
    with open(path, "r+b") as file:
        size = os.path.getsize(path) - len(_comment(_EMPTY))
        digest = _digest(file, size, _comment(_EMPTY))
        file.seek(size)
        file.write(_comment(digest))


def is_sealed(file: BinaryIO) -> bool:
    """Returns whether an archive has a seal, checking that it is valid.

    Args:
        file: Binary file. A zip archive.

    Returns:
        bool: False for an archive without a comment, as written by earlier
        versions of this library and by Keras itself.

    Raises:
        ValueError: If the archive was changed, or cut off, after it was
            sealed; or if its seal is of a later format.
        zipfile.BadZipFile: If it is not an archive.
    """
    with zipfile.ZipFile(file) as archive:
        comment = archive.comment
    size = file.seek(0, os.SEEK_END) - len(comment)
    file.seek(size - _LENGTH.size)
    (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
    if not length and not comment:
        return False
    try:
        manifest = json.loads(comment)
        version, expected = manifest["format"], manifest["sha256"]
        known = manifest["library"] == _LIBRARY and length == len(comment)
    except (ValueError, TypeError, KeyError, RecursionError):
        known = False
    if not known:
        raise ValueError("its seal is damaged")
    if version != _FORMAT:
        raise ValueError(
            f"its seal is of format {version!r}, not {_FORMAT}: of keras_rl2 "
            f"{manifest.get('version')!r}, perhaps"
        )
    unsealed = comment.replace(str(expected).encode(), _EMPTY.encode())
    if _digest(file, size, unsealed) != expected:
        raise ValueError("it was changed after it was saved, or is damaged")
    return True


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Writes a file like `numpy.savez`, of arrays or chunks, and seals it.

    Args:
        path: Path. The file, of extension `.npz`; an existing one is replaced.
        arrays: dict of arrays, or of objects with `shape`, `dtype` and a
            method `chunks()` that yields their rows, some at a time.

    Raises:
        OSError: If it cannot be written; the existing file stays.
    """
    with replacing(path) as unfinished:
        with zipfile.ZipFile(unfinished, "w") as file:
            for name, array in arrays.items():
                with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                    _write_array(member, array)
        seal(unfinished)


def check_arrays(path: Path) -> None:
    """Raises an error for a file that is missing or has changed.

    Args:
        path: Path. A file written by `write_arrays`.

    Raises:
        ValueError: If it is missing, or has changed.
    """
    try:
        with path.open("rb") as file:
            intact = is_sealed(file)
    except FileNotFoundError as error:
        raise ValueError(f"{path} is missing.") from error
    except (ValueError, zipfile.BadZipFile, NotImplementedError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not intact:
        raise ValueError(f"{path} is damaged: it has no seal.")


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of a file by name; see `check_arrays`."""
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _comment(digest: str) -> bytes:
    """Returns the comment of the archive."""
    manifest = {
        "library": _LIBRARY,
        "version": __version__,
        "format": _FORMAT,
        "sha256": digest,
    }
    return json.dumps(manifest).encode()


def _digest(file: BinaryIO, size: int, comment: bytes) -> str:
    """Returns the SHA-256 of a file up to a given byte, and of a comment."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (block := file.read(min(size, 2**20))):
        digest.update(block)
        size -= len(block)
    digest.update(comment)
    return digest.hexdigest()


def _write_array(member: IO[bytes], array: Any) -> None:
    """Writes one array, or its chunks, in the format of `numpy.save`."""
    if isinstance(array, np.ndarray):
        np.lib.format.write_array(member, array, allow_pickle=False)
        return
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
    }
    np.lib.format.write_array_header_1_0(member, header)
    for chunk in array.chunks():
        member.write(chunk.data)
