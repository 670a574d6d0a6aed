"""The states of callbacks, and their files, for a `fit` that is resumed."""

import contextlib
import os
import warnings
from collections import Counter
from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from keras_rl2.callbacks.tensorboard import EventWriter
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
        callbacks: Iterable[keras.callbacks.Callback],
        states: Iterable[Any] | None = None,
        *,
        has_ended: bool = False,
    ) -> None:
        # By their class and a number within it.
        self._callbacks: dict[str, Any] = {}
        seen: Counter[str] = Counter()
        for callback in callbacks:
            kind = type(callback).__name__
            self._callbacks[f"{kind}/{seen[kind]}"] = callback
            seen[kind] += 1
        files = {each["name"]: each.get("files") for each in states or ()}
        self._at_end = contextlib.ExitStack()
        for name, callback in self._callbacks.items():
            if isinstance(callback, keras.callbacks.CSVLogger) and (
                has_ended
                or (files.get(name) and _cut_table(callback, files[name]))
            ):
                self._append(callback)

    def _append(self, table: Any) -> None:
        """Keeps a callback from emptying its file when training begins."""
        if not table.append:
            # A later `fit` empties the file, and begins with a header.
            header = table.append_header
            self._at_end.callback(setattr, table, "append_header", header)
            self._at_end.callback(setattr, table, "append", False)
        table.append = True

    def close(self) -> None:
        """Lets later `fit`s empty files again, after the present one."""
        self._at_end.close()

    def read(self) -> list[Any]:
        """Returns the states of callbacks, as plain data, copied."""
        states = []
        for name, callback in self._callbacks.items():
            names = _kept_of(callback)
            kept = {n: v for n, v in vars(callback).items() if n in names}
            state = {"name": name, "state": kept}
            if hasattr(callback, "get_state"):
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
        """Restores the states of callbacks."""
        for each in states:
            callback = self._callbacks.get(each["name"])
            if callback is None:
                continue
            has_state = hasattr(callback, "set_state")
            kept = each.get("kept", {}) if has_state else each["state"]
            names = _kept_of(callback)
            vars(callback).update({n: kept[n] for n in names if n in kept})
            if isinstance(callback, keras.callbacks.TensorBoard):
                _continue_events(callback, each["files"])
            if has_state:
                callback.set_state(each["state"])


def _kept_of(callback: keras.callbacks.Callback) -> set[str]:
    """Returns the attributes that a callback's class and its bases keep."""
    names: set[str] = set()
    for kind in type(callback).__mro__:
        package = kind.__module__.partition(".")[0]
        names.update(KEPT.get(f"{package}.{kind.__name__}", "").split())
    return names


def _read_files(callback: Any) -> dict[str, Any]:
    """Returns the present sizes of the files that a callback appends to."""
    if isinstance(callback, keras.callbacks.CSVLogger):
        if hasattr(callback.csv_file, "fileno") and (
            not callback.csv_file.closed
        ):
            # A checkpoint survives a power cut, so its rows must, too.
            os.fsync(callback.csv_file.fileno())
        path = Path(callback.filename)
        return {"name": path.name, "size": _size(path)}
    if isinstance(callback, keras.callbacks.TensorBoard):
        for writer in callback._writers.values():
            writer.flush()
        return {
            name: EventWriter(Path(callback.log_dir, name)).get_state()
            for name in _EVENTS
        }
    return {}


def _continue_events(board: Any, files: Mapping[str, Any]) -> None:
    """Makes Keras' `TensorBoard` go on in its existing files."""
    # Open writers are of this process, and are made anew on demand: their
    # events were written before the state was restored.
    board._pop_writer()
    board._close_writers()
    board._writers.clear()
    for name in _EVENTS:
        EventWriter(Path(board.log_dir, name)).set_state(files.get(name, {}))
    board._push_writer(board._train_writer, board._global_train_batch)


def _cut_table(table: Any, files: Mapping[str, Any]) -> bool:
    """Truncates a file; returns whether it is the one of the checkpoint."""
    path = Path(table.filename)
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
