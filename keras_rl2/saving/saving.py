"""Saving agents and their weights, whole or not at all."""

import io
import os
from collections.abc import Callable
from collections.abc import Collection
from pathlib import Path

from keras_rl2.saving.atomic_files import replacing

_HDF5 = (".h5", ".hdf5")
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
) -> None:
    """Saves an agent, replacing an existing file at once.

    Remote paths (`gs://`, `hf://`), paths that Keras does not accept, and
    questions before a file is replaced (`overwrite=False`) are left to Keras.

    The arguments are `keras.Model.save` of the agent, and its own.
    """
    path = str(filepath)
    if path.endswith(_HDF5):
        raise ValueError(
            "Expected a path that ends in `.keras`: no other file of an agent "
            f"can be loaded. Received: filepath={path}"
        )
    packed = path.endswith(".keras")
    if (
        "://" in path
        or (not overwrite and os.path.exists(path))
        or packed == (zipped is False)
    ):
        keras_save(filepath, overwrite=overwrite, zipped=zipped)
        return
    if zipped is False:
        require_replaceable(path, _UNPACKED)
    with replacing(path) as unfinished:
        keras_save(unfinished, zipped=zipped)


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

    The arguments are `keras.Model.save_weights` of the agent, and its own.
    """
    path = str(filepath)
    if (
        "://" in path
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
    """Checks that a folder to be replaced holds no other files."""
    folder = Path(path)
    present = os.listdir(folder) if folder.is_dir() else []
    others = sorted(name for name in present if name not in names)
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
