"""A line that shows the progress of a `fit`."""

import datetime
import math
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TextIO

import keras

from keras_rl2.basics import arguments
from keras_rl2.callbacks.run import Logs
from keras_rl2.callbacks.run import rounds_of_fit
from keras_rl2.callbacks.run import takes_steps
from keras_rl2.callbacks.run import updates

# The eye follows no faster changes of the line on a terminal.
_REDRAW_SECONDS = 0.1
# The speed is a mean over this period, since rounds differ.
_SPEED_SECONDS = 30.0


class Progress(keras.callbacks.Callback):
    """Shows the environment steps of a `fit`, and their speed.

    Keras' own bar counts updates of one epoch. The cost of reinforcement
    learning is measured in environment steps: this callback shows those of
    the whole `fit`, the share done, steps per second, the time left and the
    mean return of the last episodes. An agent's `fit` adds one unless there is
    one already, `verbose` is not `"auto"`, or it trains on a `tf.data.Dataset`.
    With an `OfflineDataset`, which takes no steps, it counts updates.

    On a terminal it is one line that is rewritten in place, at most ten times
    a second; elsewhere (a file, a notebook, a job's log) a new line at
    intervals of `seconds`. The last line is a summary. Steps are known at the
    end of a round, so lines are no closer together than rounds.

    Args:
        total_steps: int or None. Environment steps that the `fit` is to take;
            None for its own `total_steps`, or to compute them from its epochs;
            without a share and a time left if that is impossible, as with
            rounds of whole episodes. Defaults to `None`.
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
    Defaults of PPO: batch_size=64, scale_rewards=True
    256 steps in 0:... (... steps/s), episode_return ...
    """

    @arguments.refusing_unknown
    def __init__(
        self,
        total_steps: int | None = None,
        stream: TextIO | None = None,
        seconds: float = 5.0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        arguments.check_positive(**arguments.present(total_steps=total_steps))
        arguments.check_above_zero(seconds=seconds)
        self.total_steps = total_steps
        self.stream = stream
        self.seconds = seconds
        self.clock = clock
        self._line = _Line(sys.stdout)
        self._points: deque[tuple[float, int]] = deque()
        self._unit = "steps"
        self._before = self._steps = self._epoch = 0
        self._shown = -1
        self._started = self._drawn = 0.0
        self._return: float | None = None

    def on_train_begin(self, logs: Logs = None) -> None:
        """Starts counting; shows the settings chosen by the algorithm."""
        rounds = rounds_of_fit(self)
        self._line = _Line(self.stream or sys.stdout)
        self._unit = "steps" if takes_steps(rounds) else "updates"
        self._before = self._counted() or 0
        self._steps = 0
        self._shown = -1
        self._started = self.clock()
        self._drawn = -math.inf if self._line.in_place else self._started
        self._return = None
        self._points.clear()
        settings = {} if rounds is None else rounds.own_settings()
        if settings:
            text = ", ".join(f"{key}={each}" for key, each in settings.items())
            self._line.end(f"Defaults of {type(self.model).__name__}: {text}")

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        """Stores the epoch."""
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        """Draws the progress after an update."""
        if not self._points:
            # The first round, which compiles, would lower the speed.
            self._count()
            self._points.append((self.clock(), self._steps))
        self._draw(self._updates_left(self._epoch, batch) - 1)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        """Draws; for a plain Keras model steps are known from the logs only."""
        logs = logs or {}
        self._return = logs.get("episode_return", self._return)
        if not hasattr(self.model, "env_steps"):
            self._steps = int(logs.get("env_steps", 0))
        self._draw(self._updates_left(epoch + 1))

    def on_train_end(self, logs: Logs = None) -> None:
        """Shows a summary, and ends the line."""
        self._count()
        if not self._steps:
            return
        seconds = self.clock() - self._started
        speed = self._steps / max(seconds, 1e-9)
        steps_of_fit = (self.params or {}).get("total_steps")
        is_more = steps_of_fit is not None and self._steps > steps_of_fit
        self._line.end(
            f"{self._steps:,} {self._unit}"
            f"{' (whole epochs)' if is_more else ''} in {_duration(seconds)} "
            f"({speed:,.0f} {self._unit}/s){self._episode_return(', ')}"
        )

    def _draw(self, updates_left: int) -> None:
        """Draws a line if due."""
        now = self.clock()
        pause = _REDRAW_SECONDS if self._line.in_place else self.seconds
        if now - self._drawn < pause:
            return
        self._count()
        if not self._line.in_place and self._steps == self._shown:
            # A file has this line already: updates take no steps.
            return
        self._drawn, self._shown = now, self._steps
        speed, unit = self._speed(now), self._unit
        text = f"{self._steps:,} {unit}"
        total = self._total(updates_left)
        if total is not None:
            share = min(self._steps / max(total, 1), 1.0)
            text = f"{self._steps:,}/{total:,} {unit}  {share:4.0%}"
        if speed > 0.0:
            text += f"  {speed:,.0f} {unit}/s"
            if total is not None:
                seconds_left = max(total - self._steps, 0) / speed
                text += f"  {_duration(seconds_left)} left"
        self._line.show(text + self._episode_return("  "))

    def _speed(self, now: float) -> float:
        """Returns the steps per second of the last `_SPEED_SECONDS`."""
        self._points.append((now, self._steps))
        while now - self._points[1][0] > _SPEED_SECONDS:
            self._points.popleft()
        start, first = self._points[0]
        return (self._steps - first) / (now - start) if now > start else 0.0

    def _count(self) -> None:
        """Reads the steps and the return so far."""
        counted = self._counted()
        if counted is not None:
            self._steps = counted - self._before
        rollouts = rounds_of_fit(self)
        if rollouts is not None:
            self._return = rollouts.logs().get("episode_return")

    def _counted(self) -> int | None:
        """Returns the present count of steps, or else of updates."""
        if self._unit == "updates":
            return updates(self.model)
        return getattr(self.model, "env_steps", None)

    def _episode_return(self, before: str) -> str:
        """Returns the mean return as text; empty before an episode ended."""
        if self._return is None or not math.isfinite(self._return):
            return ""
        digits = 1 if abs(self._return) >= 10.0 else 2
        return f"{before}episode_return {self._return:.{digits}f}"

    def _updates_left(self, epoch: int, batch: int = 0) -> int:
        """Returns the updates of the `fit` from a batch on; 0 if unknown."""
        params = self.params or {}
        steps: int = params.get("steps") or 0
        epochs: int = params.get("epochs", 0)
        return max((epochs - epoch) * steps - batch, 0)

    def _total(self, updates_left: int) -> int | None:
        """Returns the count at the end of the `fit`; None if it is unknown."""
        if self._unit == "updates":
            return self._steps + updates_left
        total = self.total_steps or (self.params or {}).get("total_steps")
        rollouts = rounds_of_fit(self)
        if total is not None or rollouts is None:
            return total
        if rollouts.fewest_steps_per_round != rollouts.steps_per_round:
            return None
        # Resets of NEXT_STEP environments count for the steps of a round, but
        # not as steps taken: the total decreases by them.
        rounds_left = updates_left // rollouts.updates_per_round
        steps_left = rounds_left * rollouts.steps_per_round
        return self._steps + steps_left + rollouts.steps_before_first_round


class _Line:
    """A line of text that is rewritten in place on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.in_place = bool(getattr(stream, "isatty", lambda: False)())
        self._length = 0

    def show(self, text: str) -> None:
        """Shows the text."""
        if self.in_place:
            # A line that wraps around cannot be rewritten.
            text = text[: max(shutil.get_terminal_size().columns - 1, 1)]
        self._print(text, "" if self.in_place else "\n")

    def end(self, text: str) -> None:
        """Shows the last text, which may wrap around, and ends the line."""
        self._print(text, "\n")

    def _print(self, text: str, end: str) -> None:
        """Prints over the present line, if there is one."""
        line = f"{text:<{self._length}}"
        start = "\r" if self.in_place else ""
        print(start + line, end=end, file=self._stream, flush=True)
        self._length = 0 if end else len(text)


def _duration(seconds: float) -> str:
    """Returns `1:02:03` for 3723 seconds, `2:03` for 123."""
    text = str(datetime.timedelta(seconds=round(seconds)))
    return text.removeprefix("0:").removeprefix("0")
