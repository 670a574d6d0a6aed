"""The states of callbacks, and their files, for a `fit` that is resumed."""

import contextlib
import csv
import os
import warnings
from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import Protocol
from typing import cast
from typing import runtime_checkable

import keras

from keras_rl2.callbacks.event_writer import EventWriter
from keras_rl2.saving import plain_data

# Attributes that other packages' callbacks keep from one epoch to the next, by
# package and class. There is no public way to read them: private names are
# listed here, and those of files below; a test finds missing ones.
KEPT = {
    "keras.CSVLogger": "keys",
    "keras.EarlyStopping": "wait stopped_epoch best best_weights best_epoch",
    "keras.History": "epoch history",
    "keras.ModelCheckpoint": "best _batches_seen_since_last_saving "
    "_last_batch_seen",
    "keras.ReduceLROnPlateau": "best wait cooldown_counter",
    "keras.SwapEMAWeights": "_ema_weights_in_model",
    "keras.TensorBoard": "_global_train_batch _global_test_batch "
    "_should_write_train_graph",
    "wandb.WandbMetricsLogger": "global_batch global_step",
    "wandb.WandbModelCheckpoint": "_local_best",
}
# The directories of Keras' `TensorBoard`, within its own.
_EVENTS = ("train", "validation")


@runtime_checkable
class Resumable(Protocol):
    """A callback with a state that is saved and restored."""

    def get_state(self) -> Any:
        """Returns the state as plain data."""

    def set_state(self, state: object) -> None:
        """Restores the state that `get_state` returned."""


class CallbackStates:
    """The states of the callbacks of one `fit`.

    It is made before their `on_train_begin`, in which some empty their files.

    Args:
        callbacks: Sequence of `keras.callbacks.Callback`.
        states: The result of `read`, if the `fit` is resumed: lines written
            after it are removed from files. Defaults to `None`: a new `fit`.
        has_ended: bool. Whether nothing is left to do, so that files stay
            unchanged. Defaults to `False`.
    """

    def __init__(
        self,
        callbacks: Sequence[keras.callbacks.Callback],
        states: Iterable[Any] | None = None,
        *,
        has_ended: bool = False,
    ) -> None:
        self._callbacks = dict(_by_name(callbacks))
        found = {each["name"]: each for each in states or ()}
        self._opening = contextlib.ExitStack()
        for name, callback in self._callbacks.items():
            if has_ended or "files" in found.get(name, {}):
                files = None if has_ended else found[name]["files"]
                self._opening.enter_context(_added_to(callback, files))

    def begin(self) -> None:
        """Ends the opening of files, after the callbacks' `on_train_begin`."""
        self._opening.close()

    def read(self) -> list[Any]:
        """Returns the states of callbacks, as plain data, copied.

        Raises:
            TypeError: If the state of a callback is not plain data.
        """
        states = []
        for name, callback in self._callbacks.items():
            names = _kept_of(callback)
            kept = {n: v for n, v in vars(callback).items() if n in names}
            state = {"name": name, "state": kept}
            if isinstance(callback, Resumable):
                # A class derived from one of Keras has both.
                state |= {"state": callback.get_state(), "kept": kept}
            elif not kept:
                continue
            if files := _read_files(callback):
                state["files"] = files
            try:
                states.append(plain_data.copied(state))
            except TypeError as error:
                raise TypeError(
                    f"Expected the callback {type(callback).__name__} to have "
                    f"a state of plain data. Received: {error}"
                ) from error
        return states

    def write(self, states: Iterable[Any]) -> None:
        """Restores the states of callbacks.

        Args:
            states: The result of `read`. A callback that is not among them
                begins anew.
        """
        for each in states:
            callback = self._callbacks.get(each["name"])
            if callback is None:
                continue
            is_resumable = isinstance(callback, Resumable)
            kept = each.get("kept", {}) if is_resumable else each["state"]
            names = _kept_of(callback)
            vars(callback).update({n: kept[n] for n in names if n in kept})
            if "files" in each:
                _write_files(callback, each["files"])
            if isinstance(callback, Resumable):
                callback.set_state(each["state"])


def _by_name(
    callbacks: Iterable[keras.callbacks.Callback],
) -> Iterator[tuple[str, keras.callbacks.Callback]]:
    """Yields callbacks by their class and a number within it."""
    seen: Counter[str] = Counter()
    for callback in callbacks:
        kind = type(callback).__name__
        yield f"{kind}/{seen[kind]}", callback
        seen[kind] += 1


def _kept_of(callback: keras.callbacks.Callback) -> set[str]:
    """Returns the attributes that a callback's class and its bases keep."""
    names: set[str] = set()
    for kind in type(callback).__mro__:
        package = kind.__module__.partition(".")[0]
        names.update(KEPT.get(f"{package}.{kind.__name__}", "").split())
    return names


def _read_files(callback: keras.callbacks.Callback) -> dict[str, Any]:
    """Returns the present sizes of the files that a callback appends to."""
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
def _added_to(
    callback: keras.callbacks.Callback, files: Mapping[str, Any] | None
) -> Iterator[None]:
    """Keeps a callback from emptying its file when training begins."""
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


def _write_files(
    callback: keras.callbacks.Callback, files: Mapping[str, Any]
) -> None:
    """Makes a callback append to its existing files, in its restored state."""
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
