"""Checkpoints, from which a killed training is resumed exactly."""

import contextlib
import dataclasses
import json
import logging
import math
import os
import signal
import time
import warnings
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import keras

from keras_rl2.basics import arguments
from keras_rl2.basics.stop_signal import StopSignal
from keras_rl2.callbacks.run import Logs
from keras_rl2.callbacks.run import takes_steps
from keras_rl2.callbacks.run import updates
from keras_rl2.collecting.checks import is_finite
from keras_rl2.data.plan import Plan
from keras_rl2.data.round_dataset import RoundDataset
from keras_rl2.saving import callback_states
from keras_rl2.saving.checkpoint_folder import CheckpointFolder
from keras_rl2.saving.checkpoint_folder import Saved

logger = logging.getLogger(__name__)

_EVERY_SECONDS = 60.0


class Checkpoint(keras.callbacks.Callback):
    """Saves the complete state of a run, so that it can be killed and resumed.

    The same program, run again, completes the training: if there is a
    checkpoint in the directory, `fit` restores the agent, its optimizers, the
    dataset with its replay buffer, all random states and the callbacks, and
    trains the remaining epochs. The resulting weights and `History`, except for
    measured times, are those of an uninterrupted run, bit for bit, in
    environments of classic control, MuJoCo and Atari (by `gymnasium.make`,
    without sticky actions), and in custom ones with methods `get_state()` and
    `set_state(state)`. Others begin new episodes.

    A checkpoint is made at the end of a Keras epoch, and written in a thread
    beside training; it is complete or does not exist. If it cannot be written,
    `fit` warns and continues. A damaged one is skipped in favor of the one
    before. One process at a time writes to a directory. SIGINT and SIGTERM end
    a `fit` in the main thread after the present round, with a checkpoint:
    SIGINT with `KeyboardInterrupt`; SIGTERM with the environments closed and
    `SystemExit(143)`. A second signal ends it at once.

    Each `fit` of a program with the same `Checkpoint` counts: one that had
    finished before the newest checkpoint does nothing. A `fit` that a callback
    has stopped, such as `EarlyStopping`, counts as finished until more steps or
    epochs are asked for. The states of Keras' callbacks are restored; those of
    custom callbacks if they have methods `get_state()` and `set_state(state)`.

    Args:
        directory: str or path. The folder of one run; made by the first
            checkpoint.
        every_steps: int or None. Environment steps (updates, for recorded
            data) from one checkpoint to the next, rounded up to whole epochs.
            Defaults to `None`.
        every_seconds: float or None. Seconds from one checkpoint to the next,
            likewise; 60 if neither is passed. Defaults to `None`.
        keep: int. Number of checkpoints to keep. Defaults to `3`.

    Raises:
        ValueError: If a number is out of bounds; in `fit`, if another process
            writes to the directory, or if it holds the checkpoint of another
            algorithm, environment, seed, network or dataset, or damaged ones
            only.
        OSError: In `fit`, if the directory cannot be written to.

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
    >>> train(epochs=2), train(epochs=3)
    ([0, 1], [0, 1, 2])
    """

    @arguments.refusing_unknown
    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        every_steps: int | None = None,
        every_seconds: float | None = None,
        keep: int = 3,
    ) -> None:
        super().__init__()
        arguments.check_path(directory=directory)
        arguments.check_positive(
            keep=keep, **arguments.present(every_steps=every_steps)
        )
        if every_steps is None and every_seconds is None:
            every_seconds = _EVERY_SECONDS
        if every_seconds is not None:
            arguments.check_in_range(every_seconds=(every_seconds, 0, math.inf))
        self.directory = os.fspath(directory)
        self.every_steps = every_steps
        self.every_seconds = every_seconds
        self.keep = keep
        self._folder = CheckpointFolder(directory, keep)
        self._stop = StopSignal()
        self._fits = 0
        self._agent: Any = None
        self._rounds: Any = None
        self._callbacks: Sequence[keras.callbacks.Callback] = ()
        self._plan: Plan | None = None
        # It is True for a `fit` before the one of the newest checkpoint.
        self._is_past = False
        #: Lines on where the present `fit` begins, or why it does nothing.
        self.lines: list[str] = []
        self._resumed: Any = None
        self._saved_at = (0.0, 0)
        self._epoch = 0
        self._is_saved = False

    @contextlib.contextmanager
    def restoring(
        self,
        agent: Any,
        dataset: RoundDataset,
        plan: Plan,
        callbacks: Sequence[keras.callbacks.Callback],
    ) -> Iterator[Plan]:
        """Restores the newest checkpoint, if any, for the `fit` within.

        Within, the directory is locked against other processes, and signals
        end the `fit` after the present round.

        Args:
            agent: `keras_rl2.Agent`. Bound and compiled.
            dataset: `RoundDataset`. Bound to it.
            plan: `Plan`. The `fit` without a checkpoint.
            callbacks: Sequence of `keras.callbacks.Callback` of the `fit`.

        Yields:
            `Plan`: from the position of the checkpoint.

        Raises:
            ValueError: If the checkpoint is of another training.
        """
        self._agent, self._rounds = agent, dataset
        self._callbacks = callbacks
        try:
            with self._folder.locked():
                self._plan = plan
                plan = self._restored(plan)
                with dataset.shielded(), self._stop.noticed():
                    yield plan
                    self._folder.wait()
                    # A signal may have come in the last epoch.
                    self._end()
        finally:
            self._plan, self._callbacks = None, ()

    def _restored(self, plan: Plan) -> Plan:
        """Restores agent and dataset; returns the plan from there."""
        self._resumed = None
        self.lines = []
        self._fits += 1
        saved = self._folder.newest()
        fits = 0 if saved is None else saved.state["fits"]
        self._is_past = fits > self._fits
        if saved is not None and self._is_past:
            self._show_later(saved)
            plan = dataclasses.replace(plan, last_epoch=plan.epoch)
        elif saved is not None and fits == self._fits:
            plan = self._put_back(saved, plan)
        self._is_saved = self._resumed is not None
        self._saved_at = time.monotonic(), self._done()
        return plan

    def on_train_begin(self, logs: Logs = None) -> None:
        """Lets `CSVLogger` append in a resumed `fit`; checks its kind."""
        if self._plan is None:
            raise ValueError(
                "Expected a `Checkpoint` in the `fit` of an agent with a "
                "dataset of this library. Received: one in the `fit` of "
                f"{type(self.model).__name__}"
            )
        continues = self._is_past or self._resumed is not None
        for callback in self._callbacks:
            if continues and isinstance(callback, keras.callbacks.CSVLogger):
                callback.append = True

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Saves a checkpoint if due."""
        self._epoch = epoch
        if self._resumed is not None:
            # Only now: callbacks are reset when training begins, metrics when
            # an epoch begins.
            self._finish_putting_back()
            if self._resumed is None:
                # At the end of a `fit` they are those of the epoch before.
                self.model.reset_metrics()
        elif self._stop.received is not None:
            self._leave(epoch)
        elif self._is_due():
            self._save(epoch)
        self._is_saved = False

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        """Stops before the next round, if a signal asked for it."""
        if self._resumed is not None:
            # The other callbacks have begun the epoch once more.
            self._finish_putting_back()
            self._resumed = None
        # At the end of each round Keras would wait for its logs.
        if self._stop.received is None:
            return
        rounds, within = divmod(batch, self._rounds.updates_per_round)
        if not within:
            self._leave(self._epoch, rounds)

    def on_train_end(self, logs: Logs = None) -> None:
        """Saves the final state."""
        if self._resumed is not None:
            self._finish_putting_back()
        if self._is_past or self._is_saved:
            return
        trained = self.model.history.epoch
        done = trained[-1] + 1 if trained else self._epoch
        self._save(done, end=self._end_after(done))

    def wait(self) -> None:
        """Waits until the checkpoint being written is complete."""
        self._folder.wait()

    def _save(
        self, epoch: int, rounds: int = 0, end: str | None = None
    ) -> None:
        """Saves a copy of the state, if its weights are finite, in a thread."""
        # The rows of the checkpoint being written are known when it is done.
        self._folder.wait()
        # If it cannot be written, the next attempt waits until it is due.
        self._saved_at = time.monotonic(), self._done()
        agent = self._agent.get_state()
        states = agent.get("members", {"": agent}).values()
        if not all(is_finite(v) for each in states for v in each["variables"]):
            warnings.warn(
                "No checkpoint is written: the agent's weights are not finite.",
                stacklevel=2,
            )
            return
        self._is_saved = True
        assert self._plan is not None
        plan = dataclasses.replace(self._plan, epoch=epoch, rounds=rounds)
        self._folder.write_beside(
            {
                "fits": self._fits,
                "run": _identity(self._agent, self._rounds),
                "ended": end,
                "model": _model_as_json(self._agent),
                "plan": dataclasses.asdict(plan),
                "agent": agent,
                "rounds": self._rounds.get_state(self._folder.log),
                "callbacks": callback_states.read(self._stateful()),
            }
        )

    def _put_back(self, saved: Saved, plan: Plan) -> Plan:
        """Restores agent and dataset; returns the plan from their position."""
        try:
            _check_identity(saved, _identity(self._agent, self._rounds))
            self._rounds.set_state(saved.state["rounds"], saved.log)
            self._agent.set_state(saved.state["agent"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"Expected {saved.path} to be a checkpoint of the same "
                "training: give another one a directory of its own. "
                f"Received: {error}"
            ) from error
        self._resumed, self._folder.log = saved.state, saved.log
        before = Plan(**saved.state["plan"])
        unit = "environment steps" if takes_steps(self._rounds) else "updates"
        self._tell(
            f"restored {saved.path.stem}, after epoch {before.epoch} and "
            f"{self._done():,} {unit}."
        )
        env_steps = self._agent.env_steps
        plan = self._plan = plan.resumed(before, self._rounds, env_steps)
        ended = saved.state["ended"]
        if ended is None:
            return plan
        if plan.steps_left(env_steps) == 0 or plan.is_covered_by(before):
            self._tell(
                f"the training is {ended}. Nothing is trained: ask for "
                "more steps or epochs, or pass another directory."
            )
            return dataclasses.replace(plan, last_epoch=plan.epoch)
        self._tell(f"the training was {ended}; it continues.")
        return plan

    def _tell(self, words: str) -> None:
        """Adds a line on the run to the log and for `fit`."""
        line = f"{self.directory}: {words}"
        logger.info("%s", line)
        self.lines.append(line)

    def _show_later(self, saved: Saved) -> None:
        """Restores the agent as trained by a later `fit` of the program."""
        ending = ""
        # The later `fit` may have trained another agent.
        with contextlib.suppress(ValueError, KeyError, TypeError):
            _check_identity(saved, _identity(self._agent, self._rounds))
            self._agent.set_state(saved.state["agent"])
            ending = ", and the agent is that of the checkpoint"
        self._tell(
            "this `fit` was finished, and a later one begun: nothing is "
            f"trained{ending}."
        )

    def _finish_putting_back(self) -> None:
        """Restores the states that the beginning of `fit` has reset."""
        self._agent.set_state(self._resumed["agent"])
        callback_states.write(self._stateful(), self._resumed["callbacks"])
        if not self._resumed["plan"]["rounds"]:
            self._resumed = None

    def _stateful(self) -> list[Any]:
        """Returns all callbacks of the `fit`, Keras' `History` last."""
        return [*self._callbacks, self.model.history]

    def _is_due(self) -> bool:
        """Returns whether a checkpoint is due."""
        saved_at, saved_steps = self._saved_at
        seconds, steps = time.monotonic() - saved_at, self._done() - saved_steps
        wait = math.inf if self.every_seconds is None else self.every_seconds
        return steps >= (self.every_steps or math.inf) or seconds >= wait

    def _done(self) -> int:
        """Returns the environment steps, or else updates, so far."""
        if takes_steps(self._rounds):
            return int(self._agent.env_steps)
        return updates(self._agent)

    def _end_after(self, epoch: int) -> str | None:
        """Returns why a `fit` has ended before an epoch, in words."""
        plan = self._plan
        assert plan is not None
        is_over = epoch >= plan.last_epoch
        if is_over or plan.steps_left(self._agent.env_steps) == 0:
            length = f"total_steps={plan.total_steps}"
            if plan.total_steps is None:
                length = f"epochs={plan.last_epoch}"
            return f"complete ({length})"
        return "stopped by a callback" if self.model.stop_training else None

    def _leave(self, epoch: int, rounds: int = 0) -> None:
        """Saves, and ends `fit` because of a signal."""
        self._save(epoch, rounds)
        self._folder.wait()
        self._end()

    def _end(self) -> None:
        """Ends `fit` because of a signal, if there was one."""
        if self._stop.received == signal.SIGTERM:
            # The process is about to end; after Ctrl-C users may go on.
            self._rounds.close()
        self._stop.leave()


def _identity(agent: Any, rounds: Any) -> dict[str, Any]:
    """Returns the properties that distinguish trainings, by their names."""
    return {
        "algorithm": type(agent).__name__,
        "environment": getattr(getattr(rounds, "env", None), "name", None),
        "seed of the agent": agent.seed,
        "seed of the dataset": getattr(rounds, "seed", None),
    }


def _check_identity(saved: Saved, identity: dict[str, Any]) -> None:
    """Raises an error for the checkpoint of another training."""
    run = saved.state["run"]
    differing = [
        f"{name} {run[name]!r}, where this one has {value!r}"
        for name, value in identity.items()
        if run[name] != value
    ]
    if differing:
        raise ValueError("; ".join(differing))


def _model_as_json(agent: object) -> str | None:
    """Returns the config of an agent; None if a network has no config."""
    try:
        return json.dumps(keras.saving.serialize_keras_object(agent))
    except (TypeError, ValueError, NotImplementedError, AttributeError):
        return None
