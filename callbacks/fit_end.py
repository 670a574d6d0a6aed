"""Why a `fit` came to its end, and whether it is one for the next process."""

import dataclasses
import inspect
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import keras

_DONE, _STOPPED, _ERROR = "done", "stopped", "error"


@dataclasses.dataclass(frozen=True)
class FitEnd:
    """What is noted in the last checkpoint of a `fit`, as JSON.

    Attributes:
        reason: str. `"done"`: all that was asked for; `"stopped"` by a
            callback before that; `"error"`.
        epochs: int. The Keras epoch that it was to end before.
        total_steps: int or None. Environment steps that it was asked for;
            None where it counted epochs.
        stops: tuple of str. The callbacks that may have stopped it, with
            their arguments; see `described`.
        error: str. What was raised; empty where nothing was.

    Example:

    >>> end = FitEnd("stopped", 100, stops=("EarlyStopping(patience=3)",))
    >>> end.is_one_for(100, None, ["EarlyStopping(patience=3)"])
    True
    >>> end.is_one_for(100, None, ["EarlyStopping(patience=9)"])
    False
    """

    reason: str
    epochs: int = 0
    total_steps: int | None = None
    stops: tuple[str, ...] = ()
    error: str = ""

    @classmethod
    def of_error(cls, error: BaseException) -> "FitEnd":
        """Returns that of a `fit` which raised something."""
        return cls(_ERROR, error=f"{type(error).__name__}: {error}"[:500])

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "FitEnd":
        """Returns what was noted, by this version or another one."""
        names = [each.name for each in dataclasses.fields(cls)]
        known = {n: content[n] for n in names if n in content}
        return cls(**{**known, "stops": tuple(known.get("stops", ()))})

    def to_json(self) -> dict[str, Any]:
        """Returns what is noted."""
        return dataclasses.asdict(self)

    def is_one_for(
        self, epochs: int, total_steps: int | None, callbacks: Iterable[str]
    ) -> bool:
        """Whether a `fit` that is asked for as much has nothing left to do.

        Args:
            epochs: int. The Keras epoch that it is to end before.
            total_steps: int or None. Environment steps that it is asked for.
            callbacks: Iterable of str. Its callbacks, as of `described`.

        Returns:
            bool. False where there is more to do, where what stopped the
            other one is not there, and after an error.
        """
        if self.reason == _ERROR:
            return False
        if total_steps is None or self.total_steps is None:
            asks_for_more = epochs > self.epochs
        else:
            asks_for_more = total_steps > self.total_steps
        return not asks_for_more and {*self.stops} <= {*callbacks}

    def __str__(self) -> str:
        if self.reason == _ERROR:
            return f"ended by {self.error}"
        if self.reason == _STOPPED:
            return f"stopped by {' or '.join(self.stops) or 'a callback'}"
        if self.total_steps is None:
            return f"done, all of {self.epochs} epochs"
        return f"done, all of {self.total_steps} steps"


def described(callback: keras.callbacks.Callback) -> str:
    """Returns a callback's class, and the arguments that it keeps.

    Args:
        callback: `keras.callbacks.Callback`. One that has not been used.

    Returns:
        str. The same in each process that makes the same callback; of
        arguments only those that are plain, under their own names.

    Example:

    >>> described(keras.callbacks.TerminateOnNaN())
    'TerminateOnNaN(raise_error=False)'
    """
    kept = vars(callback)
    plain = {
        name: kept[name]
        for name in inspect.signature(type(callback)).parameters
        if isinstance(kept.get(name, callback), bool | int | float | str | None)
    }
    if isinstance(callback, keras.callbacks.EarlyStopping):
        # Keras changes its sign while it is used.
        plain["min_delta"] = abs(callback.min_delta)
    shown = ", ".join(f"{name}={value!r}" for name, value in plain.items())
    return f"{type(callback).__name__}({shown})"


def may_stop(callback: keras.callbacks.Callback) -> bool:
    """Whether a callback may stop a `fit`: those of this library do not.

    Args:
        callback: `keras.callbacks.Callback`.
    """
    return not type(callback).__module__.startswith("keras_rl2.")


def who_stopped(
    callbacks: Mapping[str, keras.callbacks.Callback],
) -> tuple[str, ...]:
    """Returns the callbacks that may have stopped a `fit`.

    Args:
        callbacks: dict of `keras.callbacks.Callback`, those that may, by what
            they were `described` as.

    Returns:
        tuple of str: the `EarlyStopping` that says so; all, where none does.
    """
    own = [
        name
        for name, each in callbacks.items()
        if isinstance(each, keras.callbacks.EarlyStopping)
        and each.stopped_epoch > 0
    ]
    return tuple(own or callbacks)
