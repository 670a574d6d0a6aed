"""The position where `fit` begins, the epoch where it ends, and signals."""

import contextlib
import dataclasses
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any
from typing import TypeAlias

import keras

from keras_rl2.data.round_dataset import RoundDataset

#: What Keras passes to the methods of a callback.
Logs: TypeAlias = dict[str, Any] | None

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def updates(model: keras.Model) -> int:
    """Returns the updates of a model so far."""
    count = getattr(model, "updates", None)
    count = model.optimizer.iterations if count is None else count
    return int(keras.ops.convert_to_numpy(count))


def takes_steps(rounds: RoundDataset | None) -> bool:
    """Returns whether the rounds of a dataset begin with environment steps."""
    return rounds is None or rounds.steps_per_round > 0


def rounds_of_fit(callback: keras.callbacks.Callback) -> RoundDataset | None:
    """Returns the dataset of the present `fit`; None for one without rounds."""
    return getattr(callback.model, "rollouts", None)


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
        last_epoch: int or None. The Keras epoch that it ends before; None
            until that is known.
    """

    first_epoch: int
    warm_up: int
    env_steps: int
    epoch: int
    rounds: int = 0
    total_steps: int | None = None
    last_epoch: int | None = None

    def rounds_per_epoch(
        self, rounds: RoundDataset, total_steps: int | None
    ) -> int:
        """Returns the rounds of an epoch, limited by the total steps."""
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
        return rounds.rounds_of_epoch(needed)

    def steps_per_epoch(
        self, rounds: RoundDataset, total_steps: int | None
    ) -> int:
        """Returns the environment steps that an epoch takes at least."""
        epoch = self.rounds_per_epoch(rounds, total_steps)
        return epoch * rounds.fewest_steps_per_round

    def end(
        self, steps_per_epoch: int, epochs: int | None, total_steps: int | None
    ) -> int:
        """Returns the Keras epoch to end before."""
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
        """
        if total_steps is None or self.total_steps is None:
            return 0
        if total_steps == self.total_steps:
            return self.last_epoch or 0
        left = total_steps - (env_steps - self.env_steps)
        if total_steps < self.total_steps or left <= 0:
            return 0
        return self.epoch - (-left // steps_per_epoch)

    def covers(self, total_steps: int | None, last_epoch: int) -> bool:
        """Returns whether a `fit` asks for no more than this one has."""
        if total_steps is None or self.total_steps is None:
            return last_epoch <= (self.last_epoch or 0)
        return total_steps <= self.total_steps


class StopSignal:
    """Records SIGINT and SIGTERM within a `with` statement.

    A second signal, of either kind, has its usual effect at once.

    Attributes:
        received: int or None. The signal; None if there was none.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    @contextlib.contextmanager
    def noticed(self) -> Iterator[None]:
        """Records signals in the main thread, but not ignored ones."""
        self.received = None
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                # None if its handler is not of Python.
                if signal.getsignal(number) not in (None, signal.SIG_IGN):
                    self._before[number] = signal.signal(number, self._note)
        try:
            yield
        finally:
            self._restore()

    def leave(self) -> None:
        """Raises `KeyboardInterrupt` or `SystemExit` for a recorded signal."""
        if self.received == signal.SIGINT:
            raise KeyboardInterrupt
        if self.received is not None:
            raise SystemExit(128 + self.received)

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Records a signal, and restores the handlers for the next one."""
        del frame
        self.received = number
        self._restore()

    def _restore(self) -> None:
        """Restores the handlers from before."""
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()
