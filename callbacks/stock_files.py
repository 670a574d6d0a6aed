"""Files that Keras' own callbacks add to, cut where a resumed `fit` goes on."""

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

# What `TensorBoard` of Keras writes to, within its directory.
_EVENTS = ("train", "validation")


def read(callback: keras.callbacks.Callback) -> dict[str, Any]:
    """Returns how far a callback has written its files.

    Args:
        callback: `keras.callbacks.Callback`.

    Returns:
        dict of plain data, empty for a callback that adds to no file.
    """
    own = cast(Any, callback)
    if isinstance(callback, keras.callbacks.CSVLogger):
        if hasattr(own.csv_file, "fileno") and not own.csv_file.closed:
            # A checkpoint survives a power cut, and so do its rows.
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
        files: dict, as returned by `read`: what has been written since is cut
            off. None to leave it there.
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
    """Has a callback go on with the files that there are.

    Args:
        callback: `keras.callbacks.Callback`. Given back what it remembered.
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
        # One that is open is of this process, and made anew when it is asked
        # for: what has been written to it came before this.
        own._pop_writer()
        own._close_writers()
        own._writers.clear()
        for name in _EVENTS:
            EventWriter(Path(own.log_dir, name)).set_state(files.get(name, {}))
        own._push_writer(own._train_writer, own._global_train_batch)


def _is_cut(path: Path, files: Mapping[str, Any] | None) -> bool:
    """Cuts a file, and says whether it is the one that is gone on with."""
    if files is None:
        return True
    is_same = bool(path.name == files["name"])
    if is_same and _size(path) > files["size"]:
        os.truncate(path, files["size"])
    elif not is_same or _size(path) < files["size"]:
        warnings.warn(
            f"{path} lacks rows from before the checkpoint, which knows "
            f"{files['size']} bytes of {files['name']}.",
            stacklevel=2,
        )
    return is_same


def _size(path: Path) -> int:
    """Returns the bytes of a file; 0 where there is none."""
    return path.stat().st_size if path.is_file() else 0
