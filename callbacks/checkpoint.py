"""Training that may be killed at any time, and goes on as if it had not."""

import contextlib
import dataclasses
import math
import os
import signal
import time
import warnings
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any
from typing import cast

import keras
import numpy as np

from keras_rl2.arguments import check_in_range
from keras_rl2.arguments import check_path
from keras_rl2.arguments import check_positive
from keras_rl2.arguments import present
from keras_rl2.callbacks.fit_position import FitPosition
from keras_rl2.callbacks.protocols import Rounds
from keras_rl2.callbacks.protocols import SavedAgent
from keras_rl2.callbacks.protocols import env_steps
from keras_rl2.callbacks.protocols import takes_steps
from keras_rl2.callbacks.protocols import updates
from keras_rl2.callbacks.resumable import CallbackStates
from keras_rl2.callbacks.signals import StopSignal
from keras_rl2.checkpoint_folder import CheckpointFolder
from keras_rl2.checkpoint_folder import Saved

_EVERY_SECONDS = 60.0


class Checkpoint(keras.callbacks.Callback):
    """Saves all that a run is, so that it can be killed and goes on.

    The same program, run again, finishes what the first run began: `fit` looks
    into the directory, and where there is a checkpoint the agent, its
    optimizers, the dataset with its replay buffer, all random states, the
    environments and the callbacks are put back to where they were, and the
    epochs that are left are trained. The weights and the `History` that come
    out are those of a run that was never stopped, bit for bit, where the state
    of the environments can be copied: those of Gymnasium that are written in
    Python, MuJoCo's, and those with methods `get_state()` and
    `set_state(state)` of their own. Others begin new episodes.

    A checkpoint is written at the end of a Keras epoch, as a whole or not at
    all; one that is damaged is passed over for the one before. Where none can
    be written, on a full disk say, `fit` warns, goes on, and tries again when
    it is time to. No pickle is written or read. While `fit` lasts, SIGINT and
    SIGTERM (a batch system's way of saying that time is up) end it after the
    round that it is in, with a checkpoint: with `KeyboardInterrupt`, and with
    the environments closed and `SystemExit(143)`. A second signal ends it at
    once.

    Each `fit` of a program that is given the same `Checkpoint` counts: one
    that had been finished by the time of the newest checkpoint does nothing.
    Callbacks of Keras go on where they were, and so do their files; those of
    your own if they have methods `get_state()` and `set_state(state)`.

    Args:
        directory: str or path. Of one run; made when there is something to
            save.
        every_steps: int or None. Environment steps (updates, where data was
            recorded) from one checkpoint to the next, rounded up to whole
            epochs. Defaults to `None`.
        every_seconds: float or None. Seconds from one to the next, likewise.
            Where neither is given, 60. Defaults to `None`.
        keep: int. Checkpoints that are kept. Defaults to `3`.

    Raises:
        ValueError: If a number is out of bounds; in `fit`, if the directory
            holds the checkpoint of another kind of agent or dataset, none
            that is whole, or one that a later version has written.

    Example:

    >>> import tempfile
    >>> import keras_rl2 as rl
    >>> directory = tempfile.mkdtemp()
    >>> def train(epochs):
    ...     rollouts = rl.RolloutDataset("CartPole-v1", horizon=32, seed=0)
    ...     agent = rl.PPO.for_env("CartPole-v1", seed=0)
    ...     checkpoint = rl.callbacks.Checkpoint(directory, every_steps=1)
    ...     history = agent.fit(
    ...         rollouts, epochs=epochs, callbacks=[checkpoint], verbose=0)
    ...     return history.epoch
    >>> train(epochs=2)
    [0, 1]
    >>> train(epochs=3)
    [0, 1, 2]
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        every_steps: int | None = None,
        every_seconds: float | None = None,
        keep: int = 3,
    ) -> None:
        super().__init__()
        check_path(directory=directory)
        check_positive(keep=keep, **present(every_steps=every_steps))
        if every_seconds is not None:
            check_in_range(every_seconds=(every_seconds, 0, math.inf))
        if every_steps is None and every_seconds is None:
            every_seconds = _EVERY_SECONDS
        self.directory = os.fspath(directory)
        self.every_steps = every_steps
        self.every_seconds = every_seconds
        self.keep = keep
        self._folder = CheckpointFolder(directory, keep)
        self._log = self._folder.new_log()
        self._stop = StopSignal()
        self._fits = 0
        self._agent: SavedAgent | None = None
        self._rounds: Rounds | None = None
        self._callbacks: Sequence[keras.callbacks.Callback] = ()
        self._states = CallbackStates(())
        self._position: FitPosition | None = None
        self._resumed: dict[str, Any] | None = None
        self._saved_at = (0.0, 0)
        self._epoch = 0
        self._is_saved = False

    # What `fit` asks for.

    def begin(
        self, agent: SavedAgent, rounds: Rounds, position: FitPosition
    ) -> FitPosition:
        """Puts agent and dataset back to the newest checkpoint, if any.

        Args:
            agent: `keras_rl2.Agent`. Bound and compiled.
            rounds: `keras_rl2.data.RoundDataset`. Bound to it.
            position: `FitPosition`. Where `fit` is about to begin.

        Returns:
            `FitPosition` to begin at.

        Raises:
            ValueError: If the checkpoint is that of another kind of agent or
                dataset.
        """
        self._agent, self._rounds = agent, rounds
        self._resumed = None
        this, self._fits = self._fits, self._fits + 1
        saved = self._folder.newest()
        if saved is not None and saved.state["number_of_fit"] > this:
            position = position.past_all()
        elif saved is not None and saved.state["number_of_fit"] == this:
            position = self._put_back(saved)
        self._position = position
        self._is_saved = self._resumed is not None
        self._saved_at = time.monotonic(), self._done()
        return position

    def end_at(self, total_steps: int | None, epoch: int) -> None:
        """Is told where `fit` is to end, for a process that goes on with it.

        Args:
            total_steps: int or None. Environment steps that it is asked for.
            epoch: int. The Keras epoch that it ends before.
        """
        assert self._position is not None
        self._position = self._position.until(total_steps, epoch)

    @contextlib.contextmanager
    def watching(
        self, callbacks: Sequence[keras.callbacks.Callback]
    ) -> Iterator[None]:
        """Takes care of signals and errors while `fit` lasts.

        Args:
            callbacks: Sequence of `keras.callbacks.Callback`. Those of `fit`.
        """
        self._callbacks = callbacks
        try:
            with self._stop.noticed():
                yield
                # In the last epoch.
                self._end()
        except Exception as error:
            if paths := self._folder.paths():
                # Its weights are finite, whatever they are by now.
                error.add_note(
                    f"The newest checkpoint is {paths[-1]}: the same program, "
                    "run again, goes on from there."
                )
            raise
        finally:
            self._callbacks = ()

    # What Keras tells.

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Refuses a `fit` that does not know of checkpoints."""
        if self._position is None:
            raise ValueError(
                "Expected a `Checkpoint` in the `fit` of an agent with a "
                "dataset of this library. Received: one in the `fit` of "
                f"{type(self.model).__name__}"
            )
        self._states = CallbackStates(
            [*self._callbacks, cast(Any, self.model).history],
            self._resumed and self._resumed["callbacks"],
            has_ended=self._position.is_past_all,
        )

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Saves what has been done so far, if it is time to."""
        self._epoch = epoch
        self._states.begin()
        if self._resumed is not None:
            # Only now: callbacks forget all when training begins, metrics
            # when an epoch does.
            self._finish_putting_back()
        elif self._stop.received is not None:
            self._leave(epoch)
        elif self._is_due():
            self._try_to_save(epoch)
        self._is_saved = False

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stops before the next round, if a signal asked for it."""
        if self._resumed is not None:
            # In the midst of an epoch, which others have begun once more.
            self._finish_putting_back()
            self._resumed = None
        # Not where a round ends: Keras would wait for the logs of each.
        if self._stop.received is None:
            return
        rounds, within = divmod(
            batch, cast(Rounds, self._rounds).updates_per_round
        )
        if not within:
            self._leave(self._epoch, rounds)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Saves what has come out."""
        assert self._position is not None
        self._states.begin()
        if self._resumed is not None:
            self._finish_putting_back()
        if self._position.is_past_all or self._is_saved:
            return
        history = cast(Any, self.model).history
        done = history.epoch[-1] + 1 if history.epoch else self._epoch
        self._try_to_save(done)

    def save(self, epoch: int, rounds: int = 0) -> None:
        """Writes a checkpoint, unless the agent has numbers that are none.

        Args:
            epoch: int. The Keras epoch to go on with.
            rounds: int. Rounds of it that are done. Defaults to `0`.

        Raises:
            OSError: If it cannot be written; those before are still there.
        """
        assert self._position is not None
        agent = cast(SavedAgent, self._agent).get_state()
        if not all(map(_is_finite, agent["variables"])):
            warnings.warn(
                "No checkpoint is written: the agent's weights are not finite.",
                stacklevel=2,
            )
            return
        position = self._position.at(epoch, rounds)
        self._folder.write(
            {
                "number_of_fit": self._fits - 1,
                "position": dataclasses.asdict(position),
                "agent": agent,
                "rounds": cast(Rounds, self._rounds).get_state(self._log),
                "callbacks": self._states.read(),
            },
            self._log,
        )
        self._saved_at = time.monotonic(), self._done()
        self._is_saved = True

    def _try_to_save(self, epoch: int, rounds: int = 0) -> None:
        """Saves; where that fails training is worth more than a checkpoint."""
        try:
            self.save(epoch, rounds)
        except OSError as error:
            # Not again before it is time.
            self._saved_at = time.monotonic(), self._done()
            paths = self._folder.paths()
            newest = paths[-1] if paths else "There is none"
            warnings.warn(
                "No checkpoint could be written, and training goes on: "
                f"{error}. The newest one: {newest}",
                stacklevel=2,
            )

    def _put_back(self, saved: Saved) -> FitPosition:
        """Puts agent and dataset back, and returns where they were."""
        try:
            cast(Rounds, self._rounds).set_state(
                saved.state["rounds"], saved.log
            )
            cast(SavedAgent, self._agent).set_state(saved.state["agent"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"Expected {saved.path} to be a checkpoint of the same "
                "training: give another one a directory of its own. "
                f"Received: {error}"
            ) from error
        self._resumed, self._log = saved.state, saved.log
        return FitPosition(**saved.state["position"])

    def _finish_putting_back(self) -> None:
        """Puts back what `fit` has begun anew."""
        assert self._resumed is not None
        cast(SavedAgent, self._agent).set_state(self._resumed["agent"])
        self._states.write(self._resumed["callbacks"])
        if not self._resumed["position"]["rounds"]:
            self._resumed = None

    def _is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        seconds, done = self._saved_at
        if (
            self.every_steps is not None
            and self._done() - done >= self.every_steps
        ):
            return True
        return (
            self.every_seconds is not None
            and time.monotonic() - seconds >= self.every_seconds
        )

    def _done(self) -> int:
        """Returns environment steps, or updates, made so far."""
        agent = cast(Any, self._agent)
        if takes_steps(self._rounds):
            return env_steps(agent) or 0
        return updates(agent)

    def _leave(self, epoch: int, rounds: int = 0) -> None:
        """Saves, and ends as a signal has asked for."""
        self._try_to_save(epoch, rounds)
        self._end()

    def _end(self) -> None:
        """Ends as a signal has asked for, if there was one."""
        if self._stop.received == signal.SIGTERM:
            # The process is about to end; after Ctrl-C somebody may go on.
            cast(Rounds, self._rounds).close()
        self._stop.leave()


def _is_finite(array: np.ndarray) -> bool:
    """Whether all numbers of an array are finite; others are no numbers."""
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())
