"""What callbacks remember of a `fit`, for one that is resumed."""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Iterator
from typing import Any
from typing import Protocol
from typing import runtime_checkable

import keras

from keras_rl2 import plain_data

# What Keras' own callbacks remember, under their public names.
_REMEMBERED: dict[type[keras.callbacks.Callback], tuple[str, ...]] = {
    keras.callbacks.EarlyStopping: (
        "wait",
        "stopped_epoch",
        "best",
        "best_weights",
        "best_epoch",
    ),
    keras.callbacks.History: ("epoch", "history"),
    keras.callbacks.ModelCheckpoint: ("best", "epochs_since_last_save"),
    keras.callbacks.ReduceLROnPlateau: ("best", "wait", "cooldown_counter"),
}


@runtime_checkable
class Resumable(Protocol):
    """A callback that is to go on where another one was.

    A callback of your own that remembers something has these two methods.
    """

    def get_state(self) -> Any:
        """Returns what is remembered, as plain data."""

    def set_state(self, state: Any) -> None:
        """Takes back what `get_state` gave."""


def read(callbacks: Iterable[keras.callbacks.Callback]) -> list[Any]:
    """Returns what callbacks remember.

    Args:
        callbacks: Iterable of `keras.callbacks.Callback`.

    Returns:
        list of plain data, copied.
    """
    return [
        {"name": name, "state": plain_data.copied(_read(callback))}
        for name, callback in _named(callbacks)
        if _is_resumable(callback)
    ]


def write(
    callbacks: Iterable[keras.callbacks.Callback], states: Iterable[Any]
) -> None:
    """Gives callbacks back what those of their kind remembered.

    Args:
        callbacks: Iterable of `keras.callbacks.Callback`. Of a kind that is
            not among the states, they begin anew.
        states: As returned by `read`.
    """
    found = {each["name"]: each["state"] for each in states}
    for name, callback in _named(callbacks):
        if name in found and _is_resumable(callback):
            _write(callback, found[name])


def _named(
    callbacks: Iterable[keras.callbacks.Callback],
) -> Iterator[tuple[str, keras.callbacks.Callback]]:
    """Gives callbacks by their class, and a number where there are several."""
    seen: Counter[str] = Counter()
    for callback in callbacks:
        kind = type(callback).__name__
        yield f"{kind}/{seen[kind]}", callback
        seen[kind] += 1


def _remembered(callback: keras.callbacks.Callback) -> tuple[str, ...]:
    """Returns the attributes in which one of Keras' callbacks remembers."""
    for kind, names in _REMEMBERED.items():
        if isinstance(callback, kind):
            return names
    return ()


def _is_resumable(callback: keras.callbacks.Callback) -> bool:
    """Whether a callback remembers something that is known how to keep."""
    return isinstance(callback, Resumable) or bool(_remembered(callback))


def _read(callback: keras.callbacks.Callback) -> Any:
    """Returns what one callback remembers."""
    if isinstance(callback, Resumable):
        return callback.get_state()
    names = _remembered(callback)
    return {n: v for n, v in vars(callback).items() if n in names}


def _write(callback: keras.callbacks.Callback, state: Any) -> None:
    """Gives one callback back what it remembered."""
    if isinstance(callback, Resumable):
        callback.set_state(state)
        return
    names = _remembered(callback)
    vars(callback).update({n: v for n, v in state.items() if n in names})
