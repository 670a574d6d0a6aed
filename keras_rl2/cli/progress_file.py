"""The logs of a training, as a table for `plot` and for spreadsheets."""

import csv
import textwrap
from pathlib import Path
from typing import Any
from typing import TextIO

import keras
import numpy as np

from keras_rl2.saving.atomic_files import replacing

# The first columns, by the one that identifies a row. On recorded data, no
# episodes are played but those of evaluations.
_COLUMNS = {
    "env_steps": [
        "env_steps",
        "episode_return",
        "episode_length",
        "steps_per_second",
        "val_episode_return",
    ],
    "updates": ["updates", "updates_per_second", "val_episode_return"],
}


class ProgressFile(keras.callbacks.Callback):
    """Writes the logs of each epoch as one row of a CSV file.

    An existing file is continued from the step that the agent has reached:
    later rows belong to a part of the training that was lost.
    `keras.callbacks.CSVLogger` would keep them, and reorder the columns.

    Args:
        path: Path. The file.
        axis: str. The column that identifies a row, `"env_steps"` or
            `"updates"`. Defaults to `"env_steps"`.
    """

    def __init__(self, path: Path, axis: str = "env_steps") -> None:
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
        if self.axis == "updates":
            # The number of environment steps does not change.
            logs.pop("env_steps", None)
            logs["updates"] = count(self.model, "updates")
        if not self._columns:
            first = _COLUMNS[self.axis]
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

    def _keep(self, rows: list[list[str]]) -> None:
        """Rewrites the file, with the rows that are still valid."""
        done = count(self.model, self.axis)
        with (
            replacing(self.path) as unfinished,
            unfinished.open("w", newline="", encoding="utf-8") as file,
        ):
            if self._columns:
                at = self._columns.index(self.axis)
                valid = (row for row in rows if float(row[at]) <= done)
                csv.writer(file).writerows([self._columns, *valid])

    def _write(self, row: list[Any]) -> None:
        """Writes a row and flushes it, for readers during the training."""
        assert self._file is not None
        csv.writer(self._file).writerow(row)
        self._file.flush()


def read_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """Reads the complete rows of a progress.csv.

    Args:
        path: Path. The file.

    Returns:
        tuple: names of the columns, and the rows: the values of each, in this
        order. An incomplete last row is left out: it is still being written,
        or its process was stopped.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is another kind of file.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = (line for line in file if line.endswith("\n"))
            rows = list(csv.reader(lines))
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path}: not a table: {error}") from error
    columns = rows.pop(0) if rows else []
    if columns and not {"env_steps", "updates"} & set(columns):
        shown = textwrap.shorten(", ".join(columns), 200, placeholder=" ...")
        raise ValueError(
            f"{path}: expected a column env_steps or updates, received {shown}"
        )
    return columns, [row for row in rows if len(row) == len(columns)]


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
        ValueError: If it has no such numbers.
    """
    columns, rows = read_rows(path)
    names = ("env_steps", "episode_return")
    if "updates" in columns and "env_steps" not in columns:
        names = ("updates", "val_episode_return")
    if names[1] not in columns:
        raise ValueError(f"{path}: holds no {names[1]}")
    at = [columns.index(name) for name in names]
    try:
        curve = [[float(row[i] or "nan") for i in at] for row in rows]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    steps, returns = np.array(curve, np.float64).reshape(-1, 2).T
    return steps, returns


def count(agent: object, axis: str) -> int:
    """Returns the environment steps or the updates of an agent."""
    return int(getattr(agent, axis))
