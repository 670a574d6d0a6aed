"""A run: where training began, how far it is, and why it ended."""

import dataclasses
import inspect
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import keras

from keras_rl2.callbacks.protocols import Rounds

# The epoch of a `fit` that has nothing left to do.
_PAST_ALL_EPOCHS = 2**62


@dataclasses.dataclass(frozen=True)
class Run:
    """The position of a `fit`, which may be resumed in another process.

    Attributes:
        first_epoch: int. The Keras epoch at its beginning.
        warm_up: int. Environment steps before its first update.
        env_steps: int. Environment steps of the agent at its beginning.
        epoch: int. The present Keras epoch.
        rounds: int. Rounds of that epoch that are done.
        total_steps: int or None. Environment steps to take; None if `fit`
            counts epochs.
        last_epoch: int or None. The Keras epoch that it ends before; None if
            `fit` counts epochs.
    """

    first_epoch: int
    warm_up: int
    env_steps: int
    epoch: int
    rounds: int = 0
    total_steps: int | None = None
    last_epoch: int | None = None

    @classmethod
    def beginning(cls, env_steps: int, rounds: Rounds, epoch: int) -> "Run":
        """Returns the position of a `fit` at its beginning.

        Args:
            env_steps: int. Environment steps that the agent has seen.
            rounds: `keras_rl2.data.RoundDataset`. Bound to it.
            epoch: int. The Keras epoch to begin with.

        Returns:
            `Run`.
        """
        return cls(
            first_epoch=epoch,
            warm_up=rounds.steps_before_first_round,
            env_steps=env_steps,
            epoch=epoch,
        )

    def at(self, epoch: int, rounds: int = 0) -> "Run":
        """Returns a later position of the same `fit`.

        Args:
            epoch: int. The Keras epoch.
            rounds: int. Rounds of that epoch that are done. Defaults to `0`.

        Returns:
            `Run`.
        """
        return dataclasses.replace(self, epoch=epoch, rounds=rounds)

    def until(self, total_steps: int | None, epoch: int) -> "Run":
        """Returns the position with another end.

        Args:
            total_steps: int or None. Environment steps to take.
            epoch: int. The Keras epoch that it ends before.

        Returns:
            `Run`.
        """
        if total_steps is None:
            return self
        return dataclasses.replace(
            self, total_steps=total_steps, last_epoch=epoch
        )

    # The amount of training.

    def rounds_per_epoch(self, rounds: Rounds, total_steps: int | None) -> int:
        """Returns the rounds of an epoch, limited by the total steps.

        Args:
            rounds: `keras_rl2.data.RoundDataset`. The training data.
            total_steps: int or None. Environment steps to take; None if `fit`
                counts epochs.

        Returns:
            int.

        Raises:
            ValueError: If there would be no update within the steps.
        """
        if total_steps is None:
            return rounds.rounds_per_epoch
        if total_steps <= self.warm_up:
            raise ValueError(
                "Expected `total_steps` to be more than the "
                f"{self.warm_up} steps that are taken before the first "
                "update: pass more steps, or a smaller `warm_up`. "
                f"Received: total_steps={total_steps}"
            )
        updating = total_steps - self.warm_up
        needed = -(-updating // rounds.fewest_steps_per_round)
        return min(rounds.rounds_per_epoch, needed)

    def steps_per_epoch(self, rounds: Rounds, total_steps: int | None) -> int:
        """Returns the environment steps that an epoch takes at least.

        Args:
            rounds: `keras_rl2.data.RoundDataset`. The training data.
            total_steps: int or None. See `rounds_per_epoch`.

        Returns:
            int.
        """
        epoch = self.rounds_per_epoch(rounds, total_steps)
        return epoch * rounds.fewest_steps_per_round

    def end(
        self, steps_per_epoch: int, epochs: int | None, total_steps: int | None
    ) -> int:
        """Returns the Keras epoch to end before.

        Args:
            steps_per_epoch: int. Environment steps of an epoch, at least.
            epochs: int or None. Epochs to train.
            total_steps: int or None. Environment steps to take.

        Returns:
            int.

        Raises:
            ValueError: If both are passed.
        """
        if total_steps is None:
            return 1 if epochs is None else epochs
        if epochs is not None:
            raise ValueError(
                "Expected either `epochs` or `total_steps`. Received: "
                f"epochs={epochs}, total_steps={total_steps}"
            )
        return self.first_epoch - (
            -(total_steps - self.warm_up) // steps_per_epoch
        )

    def resumed_end(
        self, steps_per_epoch: int, total_steps: int | None, env_steps: int
    ) -> int:
        """Returns the Keras epoch that a resumed `fit` ends before, or 0.

        Resets count for `total_steps`, but are not steps of the agent. If
        `total_steps` is higher than before, and than the steps taken, training
        goes on, even if the epochs of so many steps are over.

        Args:
            steps_per_epoch: int. Environment steps of an epoch, at least.
            total_steps: int or None. Environment steps to take.
            env_steps: int. Environment steps that the agent has seen.

        Returns:
            int.
        """
        if total_steps is None or self.total_steps is None:
            return 0
        if total_steps == self.total_steps:
            return self.last_epoch or 0
        left = total_steps - (env_steps - self.env_steps)
        if total_steps < self.total_steps or left <= 0:
            return 0
        return self.epoch - (-left // steps_per_epoch)

    # The end.

    def past_all(self) -> "Run":
        """Returns the position of a `fit` that has nothing left to do."""
        return self.at(_PAST_ALL_EPOCHS)

    @property
    def is_past_all(self) -> bool:
        """Whether there is nothing left to do."""
        return self.epoch == _PAST_ALL_EPOCHS


_STOPPED = "stopped"


@dataclasses.dataclass(frozen=True)
class RunEnd:
    """The end of a `fit`, as noted in its last checkpoint.

    Attributes:
        reason: str. `"done"` for a complete `fit`; `"stopped"` by a callback
            before that.
        epochs: int. The Keras epoch that it was to end before.
        total_steps: int or None. Environment steps to take; None if `fit`
            counted epochs.
        stops: tuple of str. The callbacks that may have stopped it, with
            their arguments; see `described`.

    Example:

    >>> end = RunEnd("stopped", 100, stops=("EarlyStopping(patience=3)",))
    >>> end.is_one_for(100, None, ["EarlyStopping(patience=3)"])
    True
    >>> end.is_one_for(100, None, ["EarlyStopping(patience=9)"])
    False
    """

    reason: str
    epochs: int = 0
    total_steps: int | None = None
    stops: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "RunEnd":
        """Returns an end from its JSON, by this version or another one."""
        names = [each.name for each in dataclasses.fields(cls)]
        known = {n: content[n] for n in names if n in content}
        return cls(**{**known, "stops": tuple(known.get("stops", ()))})

    def to_json(self) -> dict[str, Any]:
        """Returns the end as JSON."""
        return dataclasses.asdict(self)

    def is_one_for(
        self, epochs: int, total_steps: int | None, callbacks: Iterable[str]
    ) -> bool:
        """Returns whether a `fit` has nothing left to do after this end.

        Args:
            epochs: int. The Keras epoch that it is to end before.
            total_steps: int or None. Environment steps to take.
            callbacks: Iterable of str. Its callbacks; see `described`.

        Returns:
            bool. False if there is more to do, if the callback that stopped
            the earlier `fit` is missing, and after an error.
        """
        if total_steps is None or self.total_steps is None:
            asks_for_more = epochs > self.epochs
        else:
            asks_for_more = total_steps > self.total_steps
        return not asks_for_more and {*self.stops} <= {*callbacks}

    def __str__(self) -> str:
        if self.reason == _STOPPED:
            return f"stopped by {' or '.join(self.stops) or 'a callback'}"
        if self.total_steps is None:
            return f"done, all of {self.epochs} epochs"
        return f"done, all of {self.total_steps} steps"


def described(callback: keras.callbacks.Callback) -> str:
    """Returns a callback's class and plain arguments.

    Args:
        callback: `keras.callbacks.Callback`, not used yet.

    Returns:
        str, equal in each process that makes the same callback. It has the
        plain arguments that are attributes of the same name.

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
        # Keras changes its sign when training begins.
        plain["min_delta"] = abs(callback.min_delta)
    shown = ", ".join(f"{name}={value!r}" for name, value in plain.items())
    return f"{type(callback).__name__}({shown})"


def may_stop(callback: keras.callbacks.Callback) -> bool:
    """Returns whether a callback may stop `fit`: this library's do not.

    Args:
        callback: `keras.callbacks.Callback`.
    """
    return not type(callback).__module__.startswith("keras_rl2.")


def who_stopped(
    callbacks: Mapping[str, keras.callbacks.Callback],
) -> tuple[str, ...]:
    """Returns the callbacks that may have stopped a `fit`.

    Args:
        callbacks: dict of the `keras.callbacks.Callback` that may, by their
            description; see `described`.

    Returns:
        tuple of str: each `EarlyStopping` that has stopped it; all callbacks
        if there is none.
    """
    own = [
        name
        for name, each in callbacks.items()
        if isinstance(each, keras.callbacks.EarlyStopping)
        and each.stopped_epoch > 0
    ]
    return tuple(own or callbacks)
