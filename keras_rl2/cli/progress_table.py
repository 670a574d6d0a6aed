"""Reading the table that a training writes."""

import csv
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

from keras_rl2.cli.errors import CommandError
from keras_rl2.files.plain_files import require_file

_LONGEST_LINE = 2**16


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
