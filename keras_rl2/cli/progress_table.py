"""Reading the table that a training writes."""

import csv
from pathlib import Path

import numpy as np

from keras_rl2.cli.errors import CommandError


def read_rows(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """Reads all complete rows of a progress.csv.

    Args:
        path: Path. The file.

    Returns:
        tuple: names of the columns, and a dict for each row. A last row that
        is not complete is left out: it is being written, or never was.

    Raises:
        FileNotFoundError: If there is no such file.
        CommandError: If it is another kind of file.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.reader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise CommandError(f"{path}: not a table: {error}") from error
    columns = lines[0] if lines else []
    if columns and not {"env_steps", "updates"} & set(columns):
        raise CommandError(
            f"{path}: expected a column env_steps or updates, received "
            f"{', '.join(columns)}"
        )
    rows = [
        dict(zip(columns, line, strict=True))
        for line in lines[1:]
        if len(line) == len(columns)
    ]
    return columns, rows


def read_curve(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Reads how the return grew with the steps, or updates.

    Of a training on recorded data it is the return of evaluations: no other
    episodes are played.

    Args:
        path: Path. A progress.csv.

    Returns:
        tuple: environment steps, or else updates, `[N]` float64, and the
        return `[N]` float64, NaN where no episode has ended.

    Raises:
        FileNotFoundError: If there is no such file.
        CommandError: If it holds no such numbers.
    """
    columns, rows = read_rows(path)
    names = ("env_steps", "episode_return")
    if "updates" in columns and "env_steps" not in columns:
        names = ("updates", "val_episode_return")
    if names[1] not in columns:
        raise CommandError(f"{path}: holds no {names[1]}")
    try:
        steps = [float(row[names[0]]) for row in rows]
        returns = [float(row[names[1]] or "nan") for row in rows]
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from error
    return np.array(steps), np.array(returns)
