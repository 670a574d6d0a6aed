"""What callbacks remember of a `fit`, for one that is resumed."""

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

from keras_rl2.callbacks import stock_files
from keras_rl2.files import plain_data

# What callbacks of others remember from one epoch to the next, by their class
# and the package that it is from. They have no other way to give it away:
# names that are not public stand here, and those of TensorBoard's writers in
# `stock_files`; a test looks for others.
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
# What they find out anew in each process, or only use within an epoch.
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
    """A callback that is to go on where another one was.

    A callback of your own that remembers something has these two methods.
    """

    def get_state(self) -> Any:
        """Returns what is remembered, as plain data."""

    def set_state(self, state: Any) -> None:
        """Takes back what `get_state` gave."""


class CallbackStates:
    """What the callbacks of one `fit` remember.

    To be made before they are told that training begins, which some take as a
    reason to empty their files.

    Args:
        callbacks: Sequence of `keras.callbacks.Callback`.
        states: As returned by `read`, where the `fit` is resumed: what
            callbacks have written since is cut off. None where it begins.
            Defaults to `None`.
        has_ended: bool. Whether nothing is left of the `fit`, and what it has
            written stays as it is. Defaults to `False`.
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
                self._opening.enter_context(
                    stock_files.added_to(callback, files)
                )
        self._at_first: dict[str, dict[str, Any]] | None = None
        self._named: set[tuple[str, str]] = set()

    def begin(self) -> None:
        """Takes a look at callbacks once all know that training begins.

        What they remember later, and not now, is what a process that goes on
        with the `fit` does not have. At any other time this does nothing.
        """
        self._opening.close()
        if self._at_first is None:
            self._at_first = {
                name: _marks(callback)
                for name, callback in self._callbacks.items()
            }

    def read(self) -> list[Any]:
        """Returns what callbacks remember, and warns of what is not known.

        Returns:
            list of plain data, copied.

        Raises:
            TypeError: If a callback gives what is not plain data.
        """
        self._warn_of_unknown()
        states = []
        for name, callback in self._callbacks.items():
            names = _listed(KEPT, callback)
            kept = {n: v for n, v in vars(callback).items() if n in names}
            state = {"name": name, "state": kept}
            if isinstance(callback, Resumable):
                # Of a class derived from one of Keras', both.
                state |= {"state": callback.get_state(), "kept": kept}
            elif not kept:
                continue
            if files := stock_files.read(callback):
                state["files"] = files
            states.append(_copied(state))
        return states

    def write(self, states: Iterable[Any]) -> None:
        """Gives callbacks back what those of their kind remembered.

        Args:
            states: As returned by `read`, by this version or another one. A
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
                stock_files.write(callback, each["files"])
            if isinstance(callback, Resumable):
                callback.set_state(each["state"])

    def _warn_of_unknown(self) -> None:
        """Names, once, what callbacks remember and nobody keeps."""
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
    """Gives callbacks by their class, and a number where there are several."""
    seen: Counter[str] = Counter()
    for callback in callbacks:
        kind = type(callback).__name__
        yield f"{kind}/{seen[kind]}", callback
        seen[kind] += 1


def _listed(
    table: Mapping[str, tuple[str, ...]], callback: keras.callbacks.Callback
) -> set[str]:
    """Returns what a table says of a callback's class and those above it."""
    return {
        attribute
        for kind in type(callback).__mro__
        for attribute in table.get(f"{_package(kind)}.{kind.__name__}", ())
    }


def _copied(state: dict[str, Any]) -> Any:
    """Returns a copy of what a callback remembers."""
    try:
        return plain_data.copied(state)
    except TypeError as error:
        raise TypeError(
            f"Expected the callback {state['name'].partition('/')[0]} to "
            f"remember plain data. Received: {error}"
        ) from error


def _marks(callback: keras.callbacks.Callback) -> dict[str, Any]:
    """Returns what tells changes of attributes that nothing else keeps."""
    packages = {_package(kind) for kind in type(callback).__mro__}
    if isinstance(callback, Resumable) or _package(type(callback)) == _OWN:
        return {}
    known = _listed(KEPT, callback) | _listed(_MADE_ANEW, callback)
    return {
        name: _mark(value)
        for name, value in vars(callback).items()
        # What a class of this library has to itself it looks after itself.
        if name not in known and not (_OWN in packages and name[0] == "_")
    }


def _mark(value: Any, depth: int = 4) -> Any:
    """Returns what is another where a value is: objects, as far as plain."""
    if isinstance(value, keras.Variable | keras.metrics.Metric):
        value = [v.numpy() for v in getattr(value, "variables", [value])]
    if isinstance(value, Mapping):
        # Of a class derived from dict as well.
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
        # An agent, say, that is kept itself.
        return id(value)
    return id(value), _mark(plain_data.plain_attributes(value))


def _package(kind: type) -> str:
    """Returns the package that a class is from."""
    return kind.__module__.partition(".")[0]
