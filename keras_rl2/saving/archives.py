"""Files of arrays, and the checksums of archives."""

import errno
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from keras_rl2.saving.atomic_files import replacing

Arrays = Mapping[str, np.ndarray]


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Writes a file with `numpy.savez`, whole or not at all."""
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of a file by name; see `check_archive`."""
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def check_archive(path: str | os.PathLike[str]) -> None:
    """Raises an error for a zip archive that is cut off or has changed.

    Each file of an archive has a checksum, the CRC-32. It shows damage, but not
    the author.

    Raises:
        OSError: If the archive cannot be read.
        ValueError: If it is damaged.

    Example:

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "arrays.npz")
    >>> write_arrays(path, {"reward": np.ones(3)})
    >>> check_archive(path)
    """
    try:
        with zipfile.ZipFile(path) as archive:
            changed = archive.testzip()
    except Exception as error:
        # A damaged index has places before the beginning of the file.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise
        raise ValueError(f"{path} is damaged: {error}") from error
    if changed:
        raise ValueError(
            f"{path} is damaged: its file {changed} was changed after it was "
            "saved"
        )
