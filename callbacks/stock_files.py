"""Files of Keras' own callbacks, truncated to the state of a checkpoint."""

import contextlib
import csv
import os
import warnings
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import cast

import keras

from keras_rl2.callbacks.event_writer import EventWriter

# The directories of Keras' `TensorBoard`, within its own.
_EVENTS = ("train", "validation")


def read(callback: keras.callbacks.Callback) -> dict[str, Any]:
    """Returns the present sizes of a callback's files.

    Args:
        callback: `keras.callbacks.Callback`.

    Returns:
        dict of plain data, empty for a callback that appends to no file.
    """
    own = cast(Any, callback)
    if isinstance(callback, keras.callbacks.CSVLogger):
        if hasattr(own.csv_file, "fileno") and not own.csv_file.closed:
            # A checkpoint survives a power cut, so its rows must, too.
            os.fsync(own.csv_file.fileno())
        path = Path(own.filename)
        return {"name": path.name, "size": _size(path)}
    if isinstance(callback, keras.callbacks.TensorBoard):
        for writer in own._writers.values():
            writer.flush()
        return {
            name: EventWriter(Path(own.log_dir, name)).get_state()
            for name in _EVENTS
        }
    return {}


@contextlib.contextmanager
def added_to(
    callback: keras.callbacks.Callback, files: Mapping[str, Any] | None
) -> Iterator[None]:
    """Keeps a callback from emptying its file when training begins.

    Args:
        callback: `keras.callbacks.Callback`.
        files: dict, as returned by `read`: later rows are removed. None to
            keep them.
    """
    own = cast(Any, callback)
    if not isinstance(callback, keras.callbacks.CSVLogger) or not _is_cut(
        Path(own.filename), files
    ):
        yield
        return
    before = own.append, own.append_header
    own.append = True
    try:
        yield
    finally:
        if not before[0]:
            # A later `fit` empties the file, and begins with a header.
            own.append, own.append_header = before


def write(callback: keras.callbacks.Callback, files: Mapping[str, Any]) -> None:
    """Makes a callback append to its existing files.

    Args:
        callback: `keras.callbacks.Callback` whose state has been restored.
        files: dict, as returned by `read`.
    """
    own = cast(Any, callback)
    if isinstance(callback, keras.callbacks.CSVLogger):
        path = Path(own.filename)
        if own.keys is not None and not (path.is_file() and not _size(path)):
            # There is a header.
            own.writer = csv.DictWriter(
                own.csv_file, ["epoch", *own.keys], delimiter=own.sep
            )
    if isinstance(callback, keras.callbacks.TensorBoard):
        # Open writers are of this process, and are made anew on demand: their
        # events were written before the state was restored.
        own._pop_writer()
        own._close_writers()
        own._writers.clear()
        for name in _EVENTS:
            EventWriter(Path(own.log_dir, name)).set_state(files.get(name, {}))
        own._push_writer(own._train_writer, own._global_train_batch)


def _is_cut(path: Path, files: Mapping[str, Any] | None) -> bool:
    """Truncates a file; returns whether it is the one of the checkpoint."""
    if files is None:
        return True
    is_same = bool(path.name == files["name"])
    if is_same and _size(path) > files["size"]:
        os.truncate(path, files["size"])
    elif not is_same or _size(path) < files["size"]:
        warnings.warn(
            f"{path} lacks rows from before the checkpoint, which has "
            f"{files['size']} bytes of {files['name']}.",
            stacklevel=2,
        )
    return is_same


def _size(path: Path) -> int:
    """Returns the size of a file; 0 if it does not exist."""
    return path.stat().st_size if path.is_file() else 0
