"""Seals on the files of saved agents and arrays, which detect damage.

A seal is the comment of the zip archive, at the end of the file: the SHA-256 of
all that is before it. Keras ignores it. It is not a signature: it shows damage,
but not the author.
"""

import hashlib
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from keras_rl2.saving.atomic_files import replacing

Arrays = Mapping[str, np.ndarray]

_SEAL = "keras_rl2 sha256 "


def seal(path: str | os.PathLike[str]) -> None:
    """Seals an archive.

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
        # In its final length, which the archive's end states.
        archive.comment = _comment("0" * 64)
    with open(path, "r+b") as file:
        size = os.path.getsize(path) - len(archive.comment)
        seal = _comment(_digest(file, size))
        file.seek(size)
        file.write(seal)


def is_sealed(file: BinaryIO) -> bool:
    """Returns whether an archive has a seal, checking that it is valid."""
    with zipfile.ZipFile(file) as archive:
        comment = archive.comment
    size = file.seek(0, os.SEEK_END) - len(comment)
    # The last field before the comment is its length.
    file.seek(size - 2)
    if not comment and not any(file.read(2)):
        return False
    if comment != _comment(_digest(file, size)):
        raise ValueError("it was changed after it was saved, or is damaged")
    return True


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Writes a file like `numpy.savez`, and seals it."""
    with replacing(path) as unfinished:
        with zipfile.ZipFile(unfinished, "w") as file:
            for name, array in arrays.items():
                with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        seal(unfinished)


def check_arrays(path: Path) -> None:
    """Raises an error for a file that is missing or has changed."""
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
    return f"{_SEAL}{digest}".encode()


def _digest(file: BinaryIO, size: int) -> str:
    """Returns the SHA-256 of the first bytes of a file."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (block := file.read(min(size, 2**20))):
        digest.update(block)
        size -= len(block)
    return digest.hexdigest()
