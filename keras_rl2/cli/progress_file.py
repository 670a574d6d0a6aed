"""The logs of a training, as a table for `plot` and for spreadsheets."""

import csv
import textwrap
from collections.abc import Iterable
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from typing import NamedTuple
from typing import TextIO

import keras
import numpy as np

from keras_rl2.cli.errors import CommandError
from keras_rl2.presets import Preset
from keras_rl2.saving.atomic_files import replacing
from keras_rl2.saving.plain_files import require_file


class Axis(NamedTuple):
    """Environment steps, or updates if no steps are taken.

    Attributes:
        name: str. The agent's counter, and the column in `progress.csv`.
        words: str. The unit in messages.
        option: str. The option that sets their number.

    Example:

    >>> axis_of(Preset("CQL", "CartPole-v1", updates=5000)).words
    'updates'
    """

    name: str
    words: str
    option: str

    def count(self, agent: object) -> int:
        """Returns the count of an agent.

        Args:
            agent: `keras_rl2.Agent`.

        Returns:
            int.
        """
        return int(getattr(agent, self.name))

    def length(self, preset: Preset) -> int:
        """Returns the length of a preset's run.

        Args:
            preset: `Preset`. A preset with this axis.

        Returns:
            int.
        """
        return preset.updates or preset.total_steps


STEPS = Axis("env_steps", "steps", "--steps")


UPDATES = Axis("updates", "updates", "--updates")


def axis_of(preset: Preset) -> Axis:
    """Returns the unit of a preset's run.

    Args:
        preset: `Preset`.

    Returns:
        `Axis`.
    """
    return UPDATES if preset.updates else STEPS


_LONGEST_LINE = 2**16


_FIRST_COLUMNS: tuple[str, ...] = (
    "env_steps",
    "episode_return",
    "episode_length",
    "steps_per_second",
    "val_episode_return",
)
# No episodes but those of evaluations.
_FIRST_OFFLINE_COLUMNS: tuple[str, ...] = (
    "updates",
    "updates_per_second",
    "val_episode_return",
)


class ProgressFile(keras.callbacks.Callback):
    """Writes the logs of each epoch as one row of a CSV file.

    An existing file is continued from the step that the agent has reached:
    later rows belong to a part of the training that was lost.
    `keras.callbacks.CSVLogger` would keep them, and reorder the columns.

    Args:
        path: Path. The file.
        axis: `Axis`. The column that identifies a row. Defaults to `STEPS`.
    """

    def __init__(self, path: Path, axis: Axis = STEPS) -> None:
        super().__init__()
        self.axis = axis
        self.path = path
        self._columns: list[str] = []
        self._file: TextIO | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Opens the file, with the rows that are still valid."""
        self._columns = []
        if self.path.exists():
            self._columns, rows = read_rows(self.path)
            self._keep(rows)
        self._file = self.path.open("a", newline="", encoding="utf-8")

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Writes a row."""
        logs = dict(logs or {})
        first = _FIRST_COLUMNS
        if self.axis != STEPS:
            first = _FIRST_OFFLINE_COLUMNS
            logs[self.axis.name] = self.axis.count(self.model)
            # The number of environment steps does not change.
            logs.pop(STEPS.name, None)
        if not self._columns:
            self._columns = [*first, *sorted(set(logs) - set(first))]
            self._write(self._columns)
        self._write([logs.get(name, "") for name in self._columns])

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Closes the file."""
        self.close()

    def close(self) -> None:
        """Closes the file, if it is open."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _keep(self, rows: Iterable[list[str]]) -> None:
        """Rewrites the file, with the rows that are still valid."""
        done = self.axis.count(self.model)
        with (
            replacing(self.path) as unfinished,
            unfinished.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file)
            if not self._columns:
                return
            writer.writerow(self._columns)
            at = self._columns.index(self.axis.name)
            writer.writerows(row for row in rows if float(row[at]) <= done)

    def _write(self, row: list[Any]) -> None:
        """Writes a row and flushes it, for readers during the training."""
        assert self._file is not None
        csv.writer(self._file).writerow(row)
        self._file.flush()


def read_rows(path: Path) -> tuple[list[str], Iterator[list[str]]]:
    """Reads the complete rows of a progress.csv, one after the other.

    Args:
        path: Path. The file.

    Returns:
        tuple: names of the columns, and an iterator over rows: the values of
        each, in this order. An incomplete last row is left out: it is still
        being written, or its process was stopped.

    Raises:
        FileNotFoundError: If there is no such file.
        CommandError: If it is another kind of file.
    """
    rows = _rows(path)
    columns = next(rows, [])
    if columns and not {"env_steps", "updates"} & set(columns):
        shown = textwrap.shorten(", ".join(columns), 200, placeholder=" ...")
        raise CommandError(
            f"{path}: expected a column env_steps or updates, received {shown}"
        )
    return columns, (row for row in rows if len(row) == len(columns))


def _rows(path: Path) -> Iterator[list[str]]:
    """Yields the complete lines of a table, as lists."""
    try:
        require_file(path)
        with path.open(newline="", encoding="utf-8") as file:
            yield from csv.reader(_lines(file, path))
    except (ValueError, csv.Error) as error:
        raise CommandError(f"{path}: not a table: {error}") from error


def _lines(file: TextIO, path: Path) -> Iterator[str]:
    """Yields complete lines of at most a plausible length."""
    while line := file.readline(_LONGEST_LINE):
        if line.endswith("\n"):
            yield line
        elif len(line) == _LONGEST_LINE:
            raise CommandError(f"{path}: not a table: a line without an end")


def read_curve(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Reads the return by steps, or updates.

    For a training on recorded data it is the return of evaluations, since no
    other episodes are played.

    Args:
        path: Path. A progress.csv.

    Returns:
        tuple: environment steps, or else updates, `[N]` float64, and the
        return `[N]` float64, NaN before the first episode has ended.

    Raises:
        FileNotFoundError: If there is no such file.
        CommandError: If it has no such numbers.
    """
    columns, rows = read_rows(path)
    names = ("env_steps", "episode_return")
    if "updates" in columns and "env_steps" not in columns:
        names = ("updates", "val_episode_return")
    if names[1] not in columns:
        raise CommandError(f"{path}: holds no {names[1]}")
    at = [columns.index(name) for name in names]
    try:
        curve = [[float(row[i] or "nan") for i in at] for row in rows]
    except CommandError:
        raise
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from error
    steps, returns = np.array(curve, np.float64).reshape(-1, 2).T
    return steps, returns
