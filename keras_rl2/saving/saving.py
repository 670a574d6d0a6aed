"""Saving agents and their weights, whole or not at all."""

import io
import os
from collections.abc import Callable
from collections.abc import Collection
from pathlib import Path
from typing import Any

from keras_rl2.saving.atomic_files import replacing
from keras_rl2.saving.sealing import seal

_ARCHIVE = ".keras"
_FILES = (_ARCHIVE, ".h5", ".hdf5")
_WEIGHTS = ".weights.h5"
# The files of an archive that Keras writes as a folder.
_UNPACKED = frozenset(
    {"assets", "config.json", "metadata.json", "model.weights.h5"}
)


def save(
    keras_save: Callable[..., None],
    filepath: str | os.PathLike[str],
    overwrite: bool = True,
    zipped: bool | None = None,
    **kwargs: Any,
) -> None:
    """Saves an agent, replacing an existing file at once, and seals it.

    Remote paths (`gs://`, `hf://`), paths that Keras does not accept, and
    questions before a file is replaced (`overwrite=False`) are left to Keras.

    Args:
        keras_save: Callable. `keras.Model.save` of the agent.
        filepath: str or path. See `keras.Model.save`.
        overwrite: bool. See `keras.Model.save`. Defaults to `True`.
        zipped: bool or None. See `keras.Model.save`. Defaults to `None`.
        **kwargs: See `keras.Model.save`.
    """
    path = str(filepath)
    if path.endswith((".h5", ".hdf5")):
        raise ValueError(
            "Expected a path that ends in `.keras`: no other file of an agent "
            f"can be loaded. Received: filepath={path}"
        )
    packed = path.endswith(_ARCHIVE)
    if (
        _is_elsewhere(path)
        or (not overwrite and os.path.exists(path))
        or (packed if zipped is False else not path.endswith(_FILES))
    ):
        keras_save(filepath, overwrite=overwrite, zipped=zipped, **kwargs)
        return
    if zipped is False:
        require_replaceable(path, _UNPACKED)
    with replacing(path) as unfinished:
        keras_save(unfinished, zipped=zipped, **kwargs)
        if packed:
            seal(unfinished)


def save_weights(
    keras_save_weights: Callable[..., None],
    filepath: str | os.PathLike[str],
    overwrite: bool = True,
    max_shard_size: float | None = None,
) -> None:
    """Saves the weights of an agent, replacing an existing file at once.

    They are written to memory first, since HDF5 ends the process when a disk
    is full. Weights in several files (`max_shard_size`), remote paths, and
    questions before a file is replaced are left to Keras.

    Args:
        keras_save_weights: Callable. `keras.Model.save_weights` of the agent.
        filepath: str or path. See `keras.Model.save_weights`.
        overwrite: bool. See `keras.Model.save_weights`. Defaults to `True`.
        max_shard_size: float or None. See `keras.Model.save_weights`. Defaults
            to `None`.
    """
    path = str(filepath)
    if (
        _is_elsewhere(path)
        or max_shard_size is not None
        or (not overwrite and os.path.exists(path))
        or not path.endswith(_WEIGHTS)
    ):
        keras_save_weights(filepath, overwrite, max_shard_size)
        return
    written = _WeightsInMemory()
    keras_save_weights(written)
    with replacing(path) as unfinished:
        unfinished.write_bytes(written.getbuffer())


def require_replaceable(
    path: str | os.PathLike[str], names: Collection[str]
) -> None:
    """Checks that a folder to be replaced holds no other files.

    Args:
        path: str or path. The folder to write.
        names: Collection of str. Names of files that may be replaced.

    Raises:
        ValueError: If there are others in it.
    """
    folder = Path(path)
    others = (
        sorted(each.name for each in folder.iterdir() if each.name not in names)
        if folder.is_dir()
        else []
    )
    if others:
        raise ValueError(
            "Expected a folder that is new, empty, or written in the same "
            f"way before, as it is replaced. Received: {path}, which holds "
            f"{', '.join(others[:3])}"
        )


class _WeightsInMemory(io.BytesIO):
    """A buffer that Keras accepts as the path of a file of weights.

    Keras checks the ending, and then opens the path with h5py, which accepts a
    path or a buffer.
    """

    def __str__(self) -> str:
        return f"memory{_WEIGHTS}"


def _is_elsewhere(path: str) -> bool:
    """Returns whether a path is remote."""
    return "://" in path
