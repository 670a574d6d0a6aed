"""A line that shows the progress of a `fit`."""

import math
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any
from typing import TextIO

import keras

from keras_rl2.basics.arguments import check_above_zero
from keras_rl2.basics.arguments import check_has
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import present
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.callbacks.protocols import env_steps
from keras_rl2.callbacks.protocols import rollouts_of
from keras_rl2.callbacks.protocols import rounds_of_fit
from keras_rl2.callbacks.protocols import takes_steps
from keras_rl2.callbacks.protocols import updates

# Between two states of the line on a terminal: the eye follows no faster.
_REDRAW_SECONDS = 0.1
# Period of the displayed speed: rounds differ, and the first one compiles.
_SPEED_SECONDS = 30.0


class Progress(keras.callbacks.Callback):
    """Shows the environment steps of a `fit`, and their speed.

    Keras' own bar counts updates of one epoch. The cost of reinforcement
    learning is measured in environment steps: this callback shows those of
    the whole `fit`, the share done, steps per second, the time left and the
    mean return of the last episodes. An agent's `fit` adds one unless there is
    one already, or `verbose` is not `"auto"`. With an `OfflineDataset`, which
    takes no steps, it counts updates.

    On a terminal it is one line that is rewritten in place, at most ten times
    a second; elsewhere (a file, a notebook, a job's log) a new line at
    intervals of `seconds`. The last line is a summary. Steps are known at the
    end of a round, so lines are no closer together than rounds.

    Args:
        total_steps: int or None. Environment steps that the `fit` is to take;
            None to compute them from its epochs; without a share and a time
            left if that is impossible, as with rounds of whole episodes.
            Defaults to `None`.
        stream: Text stream or None. The stream to write to; None for
            `sys.stdout`. Defaults to `None`.
        seconds: float. Time from one line to the next if the stream is no
            terminal. Defaults to `5.0`.
        clock: Callable. Returns the time in seconds. Defaults to
            `time.monotonic`.

    Raises:
        ValueError: If `total_steps` or `seconds` is out of range.

    Example:

    >>> import gymnasium
    >>> import keras_rl2 as rl
    >>> env = gymnasium.make("CartPole-v1")
    >>> rollouts = rl.RolloutDataset(env, horizon=64, passes=1, seed=0)
    >>> agent = rl.PPO.for_env(env, seed=0)
    >>> history = agent.fit(rollouts, total_steps=256,
    ...                     callbacks=[rl.callbacks.Progress(seconds=600)])
    PPO's own: batch_size=64, scale_rewards=True
    256 steps in 0:... (... steps/s), episode_return ...
    """

    @refusing_unknown
    def __init__(
        self,
        total_steps: int | None = None,
        stream: TextIO | None = None,
        seconds: float = 5.0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        check_positive(**present(total_steps=total_steps))
        check_above_zero(seconds=seconds)
        check_has("a text stream", "write", "flush", **present(stream=stream))
        check_has("a function", "__call__", clock=clock)
        self.total_steps = total_steps
        self.stream = stream
        self.seconds = seconds
        self.clock = clock
        self._line = _Line(sys.stdout)
        self._speed = _Speed()
        self._first_step = self._steps = 0
        self._started = self._drawn = 0.0
        self._return: float | None = None
        self._epoch = 0
        self._unit = "steps"
        # For the whole `fit`.
        self._updates: int | None = None
        self._expected: int | None = None
        self._shown = -1

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Starts counting."""
        self._line = _Line(self.stream or sys.stdout)
        self._speed = _Speed()
        self._unit = "steps" if takes_steps(rounds_of_fit(self)) else "updates"
        self._first_step = self._counted() or 0
        self._steps = 0
        self._updates = self._expected = None
        self._shown = -1
        self._started = self._drawn = self.clock()
        self._return = None
        if self._line.in_place:
            self._drawn = -math.inf
        self._speed.add(self._started, 0)
        self._say_what_was_chosen()

    def _say_what_was_chosen(self) -> None:
        """Shows the settings chosen by the algorithm, if any."""
        rollouts = rounds_of_fit(self)
        own = {} if rollouts is None else rollouts.own_settings()
        if own:
            chosen = ", ".join(f"{name}={each}" for name, each in own.items())
            self._line.end(f"{type(self.model).__name__}'s own: {chosen}")

    def on_epoch_begin(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Stores the epoch, and computes the steps of the whole `fit`."""
        self._epoch = epoch
        if self._updates is None:
            self._updates = self._updates_left(epoch, 0)
            self._expected = self._steps_to_come(self._updates)

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Draws the progress after an update."""
        self._draw(self._updates_left(self._epoch, batch) - 1)

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Draws; for a plain Keras model steps are known from the logs only."""
        logs = logs or {}
        self._return = logs.get("episode_return", self._return)
        if env_steps(self.model) is None:
            self._steps = int(logs.get("env_steps", 0))
        self._draw(self._updates_left(epoch + 1, 0))

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Shows a summary, and ends the line."""
        self._count()
        seconds = self.clock() - self._started
        speed = self._steps / max(seconds, 1e-9)
        self._line.end(
            f"{self._steps:,} {self._unit} in {_duration(seconds)} "
            f"({speed:,.0f} {self._unit}/s){self._episode_return(', ')}"
        )

    def _draw(self, updates_left: int) -> None:
        """Draws a line if due."""
        now = self.clock()
        pause = self._line.redraw_seconds or self.seconds
        if now - self._drawn < pause:
            return
        self._count()
        if not self._line.in_place and self._steps == self._shown:
            # A file has this line already: updates take no steps.
            return
        self._drawn, self._shown = now, self._steps
        self._speed.add(now, self._steps)
        to_come = self._to_come(updates_left)
        if to_come is None:
            self._line.show(self._text())
            return
        total = self._total(to_come)
        share = min(max(1.0 - to_come / max(total, 1), 0.0), 1.0)
        self._line.show(self._text(total, to_come, share))

    def _count(self) -> None:
        """Reads the steps and the return so far."""
        counted = self._counted()
        if counted is None:
            return
        self._steps = counted - self._first_step
        rollouts = rollouts_of(self.model)
        if rollouts is not None:
            self._return = rollouts.logs().get("episode_return")

    def _counted(self) -> int | None:
        """Returns the present count of steps, or else of updates."""
        if self._unit == "updates":
            return updates(self.model)
        return env_steps(self.model)

    def _text(
        self, total: int | None = None, to_come: int = 0, share: float = 0.0
    ) -> str:
        """Returns the line; without a share if the total is unknown."""
        speed = self._speed.per_second()
        unit = self._unit
        parts = [f"{self._steps:,} {unit}"]
        if total is not None:
            parts = [f"{self._steps:,}/{total:,} {unit}  {share:4.0%}"]
        parts.append(f"{speed:,.0f} {unit}/s")
        if total is not None and speed > 0.0:
            parts.append(f"{_duration(to_come / speed)} left")
        return "  ".join(parts) + self._episode_return("  ")

    def _episode_return(self, before: str) -> str:
        """Returns the mean return as text; empty before an episode ended."""
        if self._return is None or not math.isfinite(self._return):
            return ""
        return f"{before}episode_return {self._return:.1f}"

    def _updates_left(self, epoch: int, batch: int) -> int:
        """Returns the updates of the `fit` from a batch on; 0 if unknown."""
        params = self.params or {}
        steps: int = params.get("steps") or 0
        epochs: int = params.get("epochs", 0)
        return max((epochs - epoch) * steps - batch, 0)

    def _total(self, to_come: int) -> int:
        """Returns the steps of the whole `fit`, given those to come.

        It is constant from the beginning to the end. Resets of NEXT_STEP
        environments count for the expected steps, but not as steps taken: if
        none are to come, the total is the number of steps taken.
        """
        if self._unit == "updates":
            return self._steps + to_come
        if self.total_steps is not None:
            return self.total_steps
        return self._expected if to_come and self._expected else self._steps

    def _to_come(self, updates_left: int) -> int | None:
        """Returns the count that is to come; None if it is unknown."""
        if self._unit == "updates":
            return max((self._updates or 0) - self._steps, 0)
        if self.total_steps is not None:
            return max(self.total_steps - self._steps, 0)
        return self._steps_to_come(updates_left)

    def _steps_to_come(self, updates_left: int) -> int | None:
        """Returns the steps of the updates left; None if it is unknown."""
        rollouts = rounds_of_fit(self)
        if rollouts is None:
            return None
        if rollouts.fewest_steps_per_round != rollouts.steps_per_round:
            return None
        rounds_left = updates_left // rollouts.updates_per_round
        to_come = rounds_left * rollouts.steps_per_round
        return to_come + rollouts.steps_before_first_round


class _Speed:
    """Steps per second of the last `_SPEED_SECONDS`."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque()

    def add(self, now: float, steps: int) -> None:
        """Adds the present number of steps."""
        self._points.append((now, steps))
        while now - self._points[1 % len(self._points)][0] > _SPEED_SECONDS:
            self._points.popleft()

    def per_second(self) -> float:
        """Returns the speed between the oldest and the newest point."""
        (start, first), (end, last) = self._points[0], self._points[-1]
        return (last - first) / (end - start) if end > start else 0.0


class _Line:
    """A line of text that is rewritten in place on a terminal.

    Args:
        stream: Text stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.in_place = bool(getattr(stream, "isatty", lambda: False)())
        self.redraw_seconds = _REDRAW_SECONDS if self.in_place else None
        self._length = 0

    def show(self, text: str) -> None:
        """Shows the text."""
        if not self.in_place:
            self._write(f"{text}\n")
            return
        # A line that wraps around cannot be rewritten.
        text = text[: max(shutil.get_terminal_size().columns - 1, 1)]
        self._write(f"\r{text:<{self._length}}")
        self._length = len(text)

    def end(self, text: str) -> None:
        """Shows the last text, and ends the line."""
        self.show(text)
        if self.in_place:
            self._write("\n")

    def _write(self, text: str) -> None:
        """Writes and flushes."""
        self._stream.write(text)
        self._stream.flush()


def _duration(seconds: float) -> str:
    """Returns `1:02:03` for 3723 seconds, `2:03` for 123."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minute:02}:{second:02}"
    return f"{minute}:{second:02}"
