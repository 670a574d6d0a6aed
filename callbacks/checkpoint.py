"""Training that may be killed at any time, and goes on as if it had not."""

import contextlib
import dataclasses
import logging
import math
import os
import signal
import time
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import cast

import keras

from keras_rl2.basics.arguments import check_has
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.arguments import check_path
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import present
from keras_rl2.callbacks import saved_run
from keras_rl2.callbacks.checkpoint_writer import CheckpointWriter
from keras_rl2.callbacks.protocols import Rounds
from keras_rl2.callbacks.protocols import SavedAgent
from keras_rl2.callbacks.protocols import env_steps
from keras_rl2.callbacks.protocols import takes_steps
from keras_rl2.callbacks.protocols import updates
from keras_rl2.callbacks.resumable import CallbackStates
from keras_rl2.callbacks.run import Run
from keras_rl2.callbacks.run import RunEnd
from keras_rl2.callbacks.run import described
from keras_rl2.callbacks.run import may_stop
from keras_rl2.callbacks.run import who_stopped
from keras_rl2.callbacks.signals import StopSignal
from keras_rl2.collecting.checks import is_finite
from keras_rl2.files.checkpoint_folder import Saved

logger = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0


class Checkpoint(keras.callbacks.Callback):
    """Saves all that a run is, so that it can be killed and goes on.

    The same program, run again, finishes what the first run began: `fit` looks
    into the directory, and where there is a checkpoint the agent, its
    optimizers, the dataset with its replay buffer, all random states, the
    environments and the callbacks are put back to where they were, and the
    epochs that are left are trained. The weights and the `History` that come
    out are those of a run that was never stopped, bit for bit, where the state
    of the environments can be saved: those of Gymnasium that are written in
    Python, MuJoCo's, and those with methods `get_state()` and
    `set_state(state)` of their own. Others begin new episodes.

    A checkpoint is of the end of a Keras epoch, as a whole or not at all; one
    that is damaged is passed over for the one before. It is written in a
    thread beside training, from a copy: the next one and the end of `fit` wait
    for it. Where none can be written, on a full disk say, `fit` warns and goes
    on; after an hour of that it ends. No pickle is written or read, and one
    process at a time writes to a directory. While `fit` lasts, SIGINT and
    SIGTERM (a batch system's way of saying that time is up) end it after the
    round that it is in, with a checkpoint: with `KeyboardInterrupt`, and with
    the environments closed and `SystemExit(143)`. A second signal ends it at
    once.

    Each `fit` of a program that is given the same `Checkpoint` counts: one
    that had been finished by the time of the newest checkpoint does nothing.
    Finished is also what a callback has stopped, `EarlyStopping` say, until
    more steps or epochs are asked for, or that callback is another one.
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
        after_save: Callable or None. Is given the path of each checkpoint
            that is whole, in the thread that has written it, to copy it
            elsewhere say. Nothing is written or removed until it returns; what
            it raises becomes a warning. Defaults to `None`.
        clock: Callable. Returns the time in seconds. Defaults to
            `time.monotonic`.

    Raises:
        ValueError: If a number is out of bounds; in `fit`, if another process
            writes to the directory, or if it holds the checkpoint of another
            algorithm, environment, seed, network or dataset, none that is
            whole, or one that a later version has written.
        OSError: In `fit`, if the directory cannot be written to; if no
            checkpoint could be written for an hour.

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
        after_save: Callable[[Path], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        check_path(directory=directory)
        functions = {"clock": clock, **present(after_save=after_save)}
        check_has("a function", "__call__", **functions)
        check_positive(keep=keep, **present(every_steps=every_steps))
        if every_seconds is not None:
            check_in_range(every_seconds=(every_seconds, 0, math.inf))
        if every_steps is None and every_seconds is None:
            every_seconds = _EVERY_SECONDS
        self.directory = os.fspath(directory)
        self.every_steps = every_steps
        self.every_seconds = every_seconds
        self.keep = keep
        self.clock = clock
        self._writer = CheckpointWriter(directory, keep, after_save, clock)
        self._stop = StopSignal()
        self._fits = 0
        self._agent: SavedAgent | None = None
        self._rounds: Rounds | None = None
        self._callbacks: Sequence[keras.callbacks.Callback] = ()
        self._states = CallbackStates(())
        self._position: Run | None = None
        # The epoch to end before, and the steps that were asked for.
        self._asked: tuple[int, int | None] = (0, None)
        self._end_before: RunEnd | None = None
        self._stops: dict[str, keras.callbacks.Callback] = {}
        self._model_as_json: str | None = None
        #: Lines on where the present `fit` begins, or why it does nothing.
        self.told: list[str] = []
        self._resumed: dict[str, Any] | None = None
        self._saved_at = (0.0, 0)
        self._epoch = 0
        self._is_saved = False

    # What `fit` asks for.

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Keeps other processes from writing to the directory meanwhile.

        Raises:
            ValueError: By `with`, if one does.
            OSError: By `with`, if the directory cannot be written to.
        """
        return self._writer.alone()

    def begin(self, agent: SavedAgent, rounds: Rounds, position: Run) -> Run:
        """Puts agent and dataset back to the newest checkpoint, if any.

        Args:
            agent: `keras_rl2.Agent`. Bound and compiled.
            rounds: `keras_rl2.data.RoundDataset`. Bound to it.
            position: `Run`. Where `fit` is about to begin.

        Returns:
            `Run` to begin at.

        Raises:
            ValueError: If the checkpoint is that of another kind of agent or
                dataset.
        """
        self._agent, self._rounds = agent, rounds
        self._resumed = self._end_before = None
        self.told = []
        self._model_as_json = saved_run.model_as_json(agent)
        this, self._fits = self._fits, self._fits + 1
        saved = self._writer.newest()
        if saved is not None and saved.state["number_of_fit"] > this:
            position = position.past_all()
            self._show_later(saved)
        elif saved is not None and saved.state["number_of_fit"] == this:
            position = self._put_back(saved)
        self._position = position
        self._is_saved = self._resumed is not None
        self._saved_at = self.clock(), self._done()
        return position

    def end_at(
        self,
        total_steps: int | None,
        epoch: int,
        callbacks: Sequence[keras.callbacks.Callback],
    ) -> int:
        """Is told where `fit` is to end, and says where it does.

        Args:
            total_steps: int or None. Environment steps that it is asked for.
            epoch: int. The Keras epoch that it is to end before.
            callbacks: Sequence of `keras.callbacks.Callback`. Those that it
                was given, which have not been used.

        Returns:
            int: the Keras epoch that it ends before: the same, or that of the
            checkpoint, where nothing is left to do.
        """
        assert self._position is not None
        self._asked = epoch, total_steps
        self._stops = {described(c): c for c in callbacks if may_stop(c)}
        self._position = self._position.until(total_steps, epoch)
        end = self._end_before
        if end is None:
            return epoch
        if end.is_one_for(epoch, total_steps, self._stops):
            self._tell(f"the run is {end}.")
            return self._position.epoch
        self._tell(f"the run was {end}; it goes on.")
        return epoch

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
            with cast(Rounds, self._rounds).shielded(), self._stop.noticed():
                yield
                self._writer.wait()
                # In the last epoch.
                self._end()
        except Exception as error:
            self._writer.end_by(error)
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
        self._writer.report()
        self._states.begin()
        if self._resumed is not None:
            # Only now: callbacks forget all when training begins, metrics
            # when an epoch does.
            self._finish_putting_back()
            if self._resumed is None:
                # What had ended has saved those of its last epoch.
                cast(Any, self.model).reset_metrics()
        elif self._stop.received is not None:
            self._leave(epoch)
        elif self._is_due():
            self._save_beside(epoch)
        self._is_saved = False

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stops before the next round, if a signal asked for it."""
        self._writer.report()
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
        trained = self.model.history.epoch
        done = trained[-1] + 1 if trained else self._epoch
        self._save_beside(done, self._end_after(done))

    def save(self, epoch: int, rounds: int = 0) -> None:
        """Writes a checkpoint, unless the agent has numbers that are none.

        In this thread, whatever is being written beside it.

        Args:
            epoch: int. The Keras epoch to go on with.
            rounds: int. Rounds of it that are done. Defaults to `0`.

        Raises:
            OSError: If it cannot be written; those before are still there.
        """
        state = self._read(epoch, rounds)
        if state is not None:
            self._writer.write(state)

    def wait(self) -> None:
        """Waits until what is being written beside training is written."""
        self._writer.wait()

    def _save_beside(self, epoch: int, end: RunEnd | None = None) -> None:
        """Saves a copy of all, while training goes on."""
        state = self._read(epoch)
        if state is not None:
            self._writer.write_beside(state, end)

    def _read(self, epoch: int, rounds: int = 0) -> dict[str, Any] | None:
        """Returns what is saved; None if the agent has numbers that are none.

        Once the checkpoint before is written: what is new since is not known
        any sooner.
        """
        assert self._position is not None
        self._writer.wait()
        # Whether it can be written or not: not again before it is time.
        self._saved_at = self.clock(), self._done()
        agent = cast(SavedAgent, self._agent).get_state()
        if not all(map(is_finite, agent["variables"])):
            warnings.warn(
                "No checkpoint is written: the agent's weights are not finite.",
                stacklevel=2,
            )
            return None
        position = self._position.at(epoch, rounds)
        self._is_saved = True
        return {
            "number_of_fit": self._fits - 1,
            "run": saved_run.identity(self._agent, self._rounds),
            "model": self._model_as_json,
            "position": dataclasses.asdict(position),
            "agent": agent,
            "rounds": cast(Rounds, self._rounds).get_state(self._writer.log),
            "callbacks": self._states.read(),
        }

    def _put_back(self, saved: Saved) -> Run:
        """Puts agent and dataset back, and returns where they were."""
        run = saved_run.identity(self._agent, self._rounds)
        try:
            # Releases before 0.2 have noted none.
            saved_run.check_identity(saved.state.get("run"), run)
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
        self._resumed, self._writer.log = saved.state, saved.log
        at = Run(**saved.state["position"])
        counted = (
            "environment steps" if takes_steps(self._rounds) else "updates"
        )
        self._tell(
            f"put back to {saved.path.name}: epoch {at.epoch + 1}, "
            f"{self._done():,} {counted}."
        )
        if saved.ended is not None:
            self._end_before = RunEnd.from_json(saved.ended)
        return at

    def _tell(self, words: str) -> None:
        """Notes where the run is, for the log and for `fit`."""
        line = f"{self.directory}: {words}"
        logger.info("%s", line)
        self.told.append(line)

    def _show_later(self, saved: Saved) -> None:
        """Gives the agent what a later `fit` of the program has made of it."""
        run = saved_run.identity(self._agent, self._rounds)
        given = ""
        # The later one may have trained another agent.
        with contextlib.suppress(ValueError, KeyError, TypeError):
            saved_run.check_identity(saved.state.get("run"), run)
            cast(SavedAgent, self._agent).set_state(saved.state["agent"])
            given = ", and the agent is that of the checkpoint"
        self._tell(
            "this `fit` was finished, and a later one begun: nothing is "
            f"trained{given}."
        )

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
            and self.clock() - seconds >= self.every_seconds
        )

    def _done(self) -> int:
        """Returns environment steps, or updates, made so far."""
        agent = cast(Any, self._agent)
        if takes_steps(self._rounds):
            return env_steps(agent) or 0
        return updates(agent)

    def _end_after(self, epoch: int) -> RunEnd | None:
        """Returns why a `fit` has ended before an epoch."""
        epochs, total_steps = self._asked
        begin = cast(Run, self._position)
        has_steps = total_steps is not None and (
            (env_steps(self._agent) or 0) - begin.env_steps >= total_steps
        )
        if epoch >= epochs or has_steps:
            return RunEnd("done", epochs, total_steps)
        if self.model.stop_training:
            stops = who_stopped(self._stops)
            return RunEnd("stopped", epochs, total_steps, stops)
        return None

    def _leave(self, epoch: int, rounds: int = 0) -> None:
        """Saves, and ends as a signal has asked for."""
        try:
            self.save(epoch, rounds)
        except OSError as error:
            self._writer.warn(error)
        self._end()

    def _end(self) -> None:
        """Ends as a signal has asked for, if there was one."""
        if self._stop.received == signal.SIGTERM:
            # The process is about to end; after Ctrl-C somebody may go on.
            cast(Rounds, self._rounds).close()
        self._stop.leave()
