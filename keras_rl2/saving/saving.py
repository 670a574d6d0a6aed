"""Saving agents and their weights, whole or not at all."""

import io
import os
from collections.abc import Callable
from collections.abc import Collection
from pathlib import Path
from typing import Any

from keras_rl2.files.atomic_files import replacing
from keras_rl2.files.sealing import seal

_ARCHIVE = ".keras"
_FILES = (_ARCHIVE, ".h5", ".hdf5")
_WEIGHTS = ".weights.h5"
# What Keras writes where an archive is asked for as a folder.
_UNPACKED = frozenset(
    {"assets", "config.json", "metadata.json", "model.weights.h5"}
)


def save(
    keras_save: Callable[..., None],
    filepath: Any,
    overwrite: bool = True,
    zipped: bool | None = None,
    **kwargs: Any,
) -> None:
    """Saves an agent in the place of what is there, and seals it.

    What is no file of this machine (`gs://`, `hf://`), what Keras does not
    take, and what it asks about first (`overwrite=False`) is Keras' own
    affair.

    Args:
        keras_save: Callable. `keras.Model.save` of the agent.
        filepath: str or path. As of it.
        overwrite: bool. As of it. Defaults to `True`.
        zipped: bool or None. As of it. Defaults to `None`.
        **kwargs: As of it.
    """
    path = str(filepath)
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
    filepath: Any,
    overwrite: bool = True,
    max_shard_size: float | None = None,
) -> None:
    """Saves the weights of an agent in the place of what is there.

    They are written to memory first: HDF5 itself ends the process where the
    disk is full. Weights in several files, of `max_shard_size`, and what is
    not for this machine or to be asked about, are Keras' own affair.

    Args:
        keras_save_weights: Callable. `keras.Model.save_weights` of the agent.
        filepath: str or path. As of it.
        overwrite: bool. As of it. Defaults to `True`.
        max_shard_size: float or None. As of it. Defaults to `None`.
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
    """Refuses a folder to be replaced that holds more than is written.

    Args:
        path: str or path. Where a folder is to be written.
        names: Collection of str. What the folder of before may hold.

    Raises:
        ValueError: If something else is in it.
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
    """What Keras takes for the path of a file of weights.

    It looks at the ending, and then opens with h5py, which takes both.
    """

    def __str__(self) -> str:
        return f"memory{_WEIGHTS}"


def _is_elsewhere(path: str) -> bool:
    """Whether a path is not of this machine's disks."""
    return "://" in path
