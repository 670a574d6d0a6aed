"""The states of callbacks, for a `fit` that is resumed."""

import contextlib
import json
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Protocol
from typing import runtime_checkable

import keras

from keras_rl2.callbacks.stock_files import added_to
from keras_rl2.callbacks.stock_files import read as read_files
from keras_rl2.callbacks.stock_files import write as write_files
from keras_rl2.files import plain_data

# Attributes that other packages' callbacks keep from one epoch to the next, by
# package and class. There is no public way to read them: private names are
# listed here, and those of TensorBoard's writers in `stock_files`; a test
# finds missing ones.
KEPT: dict[str, tuple[str, ...]] = {
    "keras.CSVLogger": ("keys",),
    "keras.EarlyStopping": (
        "wait",
        "stopped_epoch",
        "best",
        "best_weights",
        "best_epoch",
    ),
    "keras.History": ("epoch", "history"),
    "keras.ModelCheckpoint": (
        "best",
        "_batches_seen_since_last_saving",
        "_last_batch_seen",
    ),
    "keras.OrbaxCheckpoint": (
        "best",
        "_batches_seen_since_last_saving",
        "_last_batch_seen",
        "_total_batches_seen",
    ),
    "keras.ReduceLROnPlateau": ("best", "wait", "cooldown_counter"),
    "keras.SwapEMAWeights": ("_ema_weights_in_model",),
    "keras.TensorBoard": (
        "_global_train_batch",
        "_global_test_batch",
        "_should_write_train_graph",
    ),
    "wandb.WandbMetricsLogger": ("global_batch", "global_step"),
    "wandb.WandbModelCheckpoint": ("_local_best",),
}
# Attributes that are set anew in each process, or used within an epoch only.
_MADE_ANEW: dict[str, tuple[str, ...]] = {
    "keras.Callback": ("_model", "params"),
    "keras.CSVLogger": ("writer", "csv_file", "append_header"),
    "keras.EarlyStopping": ("min_delta", "monitor_op"),
    "keras.ModelCheckpoint": ("min_delta", "monitor_op", "_current_epoch"),
    "keras.OrbaxCheckpoint": ("min_delta", "monitor_op", "_async_futures"),
    "keras.ProgbarLogger": ("seen", "progbar", "target"),
    "keras.ReduceLROnPlateau": ("min_delta", "monitor_op"),
    "keras.TensorBoard": (
        "_batch_start_time",
        "_batch_trace_context",
        "_epoch_start_time",
        "_is_tracing",
        "_prev_summary_state",
        "_previous_epoch_iterations",
        "_profiler_started",
        "_summary_module",
        "_writers",
    ),
    "wandb.WandbModelCheckpoint": ("_is_old_tf_keras_version",),
}

_OWN = "keras_rl2"


@runtime_checkable
class Resumable(Protocol):
    """A callback with a state that is saved and restored.

    A custom callback with a state has these two methods.
    """

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
            after it are removed from the files of callbacks. None for a new
            `fit`. Defaults to `None`.
        has_ended: bool. Whether the `fit` has nothing left to do, so that
            files stay unchanged. Defaults to `False`.
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
                self._opening.enter_context(added_to(callback, files))
        self._at_first: dict[str, dict[str, Any]] | None = None
        self._named: set[tuple[str, str]] = set()

    def begin(self) -> None:
        """Records the attributes of callbacks after their `on_train_begin`.

        A process that resumes the `fit` lacks attributes that change later.
        Further calls do nothing.
        """
        self._opening.close()
        if self._at_first is None:
            self._at_first = {
                name: _marks(callback)
                for name, callback in self._callbacks.items()
            }

    def read(self) -> list[Any]:
        """Returns the states of callbacks; warns of changes that it misses.

        Returns:
            list of plain data, copied.

        Raises:
            TypeError: If the state of a callback is not plain data.
        """
        self._warn_of_unknown()
        states = []
        for name, callback in self._callbacks.items():
            names = _listed(KEPT, callback)
            kept = {n: v for n, v in vars(callback).items() if n in names}
            state = {"name": name, "state": kept}
            if isinstance(callback, Resumable):
                # A class derived from one of Keras has both.
                state |= {"state": callback.get_state(), "kept": kept}
            elif not kept:
                continue
            if files := read_files(callback):
                state["files"] = files
            states.append(_copied(state))
        return states

    def write(self, states: Iterable[Any]) -> None:
        """Restores the states of callbacks.

        Args:
            states: The result of `read`, by this version or another one. A
                callback that is not among them begins anew.
        """
        for each in states:
            callback = self._callbacks.get(each["name"])
            if callback is None:
                continue
            kept = each["state"]
            if isinstance(callback, Resumable):
                kept = each.get("kept", {})
            names = _listed(KEPT, callback)
            vars(callback).update({n: kept[n] for n in names if n in kept})
            if "files" in each:
                write_files(callback, each["files"])
            if isinstance(callback, Resumable):
                callback.set_state(each["state"])

    def _warn_of_unknown(self) -> None:
        """Warns once of each attribute that changes and is not saved."""
        for name, before in (self._at_first or {}).items():
            callback = self._callbacks[name]
            kind = type(callback).__name__
            for attribute, mark in _marks(callback).items():
                if before.get(attribute) == mark:
                    continue
                if (kind, attribute) not in self._named:
                    self._named.add((kind, attribute))
                    warnings.warn(
                        f"`{kind}.{attribute}` changes and is not in the "
                        "checkpoint: a run that is resumed begins it anew. "
                        "To keep it, give the class methods `get_state()` "
                        "and `set_state(state)`.",
                        stacklevel=2,
                    )


def _by_name(
    callbacks: Iterable[keras.callbacks.Callback],
) -> Iterator[tuple[str, keras.callbacks.Callback]]:
    """Yields callbacks by their class and a number within it."""
    seen: Counter[str] = Counter()
    for callback in callbacks:
        kind = type(callback).__name__
        yield f"{kind}/{seen[kind]}", callback
        seen[kind] += 1


def _listed(
    table: Mapping[str, tuple[str, ...]], callback: keras.callbacks.Callback
) -> set[str]:
    """Returns the attributes in a table for a callback's class and bases."""
    return {
        attribute
        for kind in type(callback).__mro__
        for attribute in table.get(f"{_package(kind)}.{kind.__name__}", ())
    }


def _copied(state: dict[str, Any]) -> Any:
    """Returns a copy of a callback's state."""
    try:
        return plain_data.copied(state)
    except TypeError as error:
        raise TypeError(
            f"Expected the callback {state['name'].partition('/')[0]} to "
            f"have a state of plain data. Received: {error}"
        ) from error


def _marks(callback: keras.callbacks.Callback) -> dict[str, Any]:
    """Returns a mark of each attribute that is not saved, to detect changes."""
    packages = {_package(kind) for kind in type(callback).__mro__}
    if isinstance(callback, Resumable) or _package(type(callback)) == _OWN:
        return {}
    known = _listed(KEPT, callback) | _listed(_MADE_ANEW, callback)
    return {
        name: _mark(value)
        for name, value in vars(callback).items()
        # Classes of this library save their private attributes themselves.
        if name not in known and not (_OWN in packages and name[0] == "_")
    }


def _mark(value: object, depth: int = 4) -> Any:
    """Returns a mark that changes with a value; for objects as far as plain."""
    if isinstance(value, keras.Variable | keras.metrics.Metric):
        value = [v.numpy() for v in getattr(value, "variables", [value])]
    if isinstance(value, Mapping):
        # Also for classes derived from dict.
        value = dict(value)
    if plain_data.is_plain(value):
        tree, arrays = plain_data.to_json(value)
        marks = [zlib.crc32(each.tobytes()) for each in arrays.values()]
        return json.dumps(tree), marks
    if isinstance(value, dict) and depth:
        value = list(value.items())
    if isinstance(value, list | tuple) and depth:
        return [_mark(each, depth - 1) for each in value]
    if isinstance(value, keras.layers.Layer) or _package(type(value)) in (
        *("keras", "tensorflow", _OWN),
    ):
        # E.g. an agent, which is saved itself.
        return id(value)
    return id(value), _mark(plain_data.plain_attributes(value))


def _package(kind: type) -> str:
    """Returns the package of a class."""
    return kind.__module__.partition(".")[0]
