"""The logs of a training, as a table for `plot` and for spreadsheets."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from typing import TextIO

import keras

from keras_rl2.cli.axis import STEPS
from keras_rl2.cli.axis import Axis
from keras_rl2.cli.progress_table import read_rows
from keras_rl2.files.atomic_files import replacing

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
