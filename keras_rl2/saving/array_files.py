"""Files of arrays, written whole or not at all, and checked when read."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_rl2.saving.atomic_files import replacing
from keras_rl2.saving.sealing import is_sealed
from keras_rl2.saving.sealing import seal

# Of arrays, or of those with a method `chunks` that yields their rows.
Arrays = Mapping[str, Any]


def write(path: Path, arrays: Arrays) -> None:
    """Writes a file like `numpy.savez`, of arrays or chunks, and seals it.

    Args:
        path: Path. The file, of extension `.npz`; an existing one is replaced.
        arrays: dict of arrays, or of objects with `shape`, `dtype` and a
            method `chunks()` that yields their rows, some at a time.

    Raises:
        OSError: If it cannot be written; the existing file stays.
    """
    whole = {n: a for n, a in arrays.items() if isinstance(a, np.ndarray)}
    with replacing(path) as unfinished:
        np.savez(unfinished, **whole)  # type: ignore[arg-type]
        with zipfile.ZipFile(unfinished, "a") as file:
            for name, array in arrays.items():
                if not isinstance(array, np.ndarray):
                    _write_chunks(file, name, array)
        seal(unfinished)


def check(path: Path) -> None:
    """Raises an error for a file that is missing or has changed.

    Args:
        path: Path. A file written by `write`.

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


def read(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of a file that `check` has accepted, by name."""
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _write_chunks(file: zipfile.ZipFile, name: str, array: Any) -> None:
    """Writes one array in chunks, in the format of `numpy.save`."""
    header = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": False,
        "shape": array.shape,
    }
    with file.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, header)
        for chunk in array.chunks():
            member.write(chunk.data)
