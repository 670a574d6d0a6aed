"""`keras-rl2 plot`: learning curves of trainings, and their statistics.

Letters: S is the number of seeds, N of points on a curve.
"""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from typing import NamedTuple

import numpy as np

from keras_rl2.cli.parser import require_module
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.run_folder import read_if_exists
from keras_rl2.cli.run_folder import require_path
from keras_rl2.saving.atomic_files import replacing

_INCHES = (6.4, 4.2)
# Share of the resamples on either side of a 95 % interval.
_TAIL = (1.0 - 0.95) / 2.0


class _Curve(NamedTuple):
    """The learning curve of one algorithm in one environment."""

    label: str
    environment: str
    seeds: int
    unit: str
    steps: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def run(arguments: argparse.Namespace) -> None:
    """Draws the figure, and prints the end of each curve."""
    require_module("matplotlib", "pip install matplotlib")
    groups = _groups(arguments.runs)
    curves = [_curve(folder, files) for folder, files in groups.items()]
    output = Path(arguments.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    _draw(_distinct(curves, list(groups)), output, arguments.dpi)
    for curve in curves:
        print(
            f"{curve.label} on {curve.environment}: return "
            f"{curve.mean[-1]:.1f} [{curve.low[-1]:.1f}, "
            f"{curve.high[-1]:.1f}] at {curve.steps[-1]:,.0f} {curve.unit}, "
            f"{_seeds(curve.seeds)}"
        )
    print(output)


def _groups(runs: Sequence[str]) -> dict[Path, list[Path]]:
    """Returns files of progress by the folder of all their seeds."""
    groups: dict[Path, list[Path]] = {}
    for run in map(require_path, runs):
        files = [run] if run.is_file() else sorted(run.rglob("progress.csv"))
        if not files:
            raise ValueError(f"{run}: no progress.csv in it")
        for file in files:
            folder = file.parent
            if folder.name.startswith("seed-"):
                folder = folder.parent
            group = groups.setdefault(folder, [])
            if file not in group:
                group.append(file)
    return groups


def _curve(folder: Path, files: list[Path]) -> _Curve:
    """Reads the seeds of one algorithm and averages them."""
    try:
        steps, values = on_common_steps([read_curve(file) for file in files])
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from error
    mean = interquartile_mean(values)
    low, high = bootstrap_interval(values)
    preset = read_if_exists(RunFolder(files[0].parent).preset)
    label = str(preset.get("algorithm", folder.name))
    environment = str(preset.get("environment", "return"))
    unit = "updates" if preset.get("updates") else "steps"
    return _Curve(label, environment, len(files), unit, steps, mean, low, high)


def _distinct(curves: list[_Curve], folders: list[Path]) -> list[_Curve]:
    """Tells curves of one algorithm and environment apart by their folders."""
    names = [(curve.label, curve.environment) for curve in curves]
    return [
        curve
        if names.count(name) == 1
        else curve._replace(label=f"{curve.label}, {folder}")
        for curve, name, folder in zip(curves, names, folders, strict=True)
    ]


def _draw(curves: list[_Curve], output: Path, dpi: int) -> None:
    """Draws one plot for each environment and unit, side by side."""
    # `pyplot` would open a window; a `Figure` is drawn by Agg.
    from matplotlib.figure import Figure

    shown = list(dict.fromkeys((c.environment, c.unit) for c in curves))
    width, height = _INCHES
    figure = Figure(figsize=(width * len(shown), height), layout="constrained")
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for panel, each in zip(panels, shown, strict=True):
        _draw_panel(
            panel, [c for c in curves if (c.environment, c.unit) == each]
        )
        panel.set_title(each[0])
    with replacing(output) as unfinished:
        figure.savefig(unfinished, dpi=dpi)


def _draw_panel(panel: Any, curves: list[_Curve]) -> None:
    """Draws the curves of one environment."""
    for curve in curves:
        label = f"{curve.label} ({_seeds(curve.seeds)})"
        (line,) = panel.plot(curve.steps, curve.mean, label=label)
        if curve.seeds > 1:
            panel.fill_between(
                curve.steps,
                curve.low,
                curve.high,
                color=line.get_color(),
                alpha=0.2,
                linewidth=0.0,
            )
    xlabel, episodes = "updates", "evaluations"
    if curves[0].unit == "steps":
        xlabel, episodes = "environment steps", "last 100 episodes"
    panel.set_xlabel(xlabel)
    panel.set_ylabel(f"return (sum of rewards), {episodes}")
    panel.grid(alpha=0.3)
    panel.legend()


def _seeds(seeds: int) -> str:
    """Returns the number of seeds as text."""
    return "1 seed" if seeds == 1 else f"{seeds} seeds"


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """Averages the middle half of the seeds.

    A quarter of the seeds at either end is left out, by parts where their
    number is not a multiple of four: one lucky or lost seed does not decide,
    and fewer seeds than for a median will do.

    Args:
        values: `[S, ...]` float. One row for each seed.

    Returns:
        `[...]` float64: sum(w x) / (S / 2) over the sorted x, where w is the
        share of the i-th value that lies within S/4 ... 3S/4.

    Example:

    >>> float(interquartile_mean(np.array([100.0, 1.0, 3.0, -50.0])))
    2.0

    Reference:
        [Agarwal et al., 2021](https://arxiv.org/abs/2108.13264), section 4.3.
    """
    seeds = len(values)
    ends = np.clip(np.arange(seeds + 1), 0.25 * seeds, 0.75 * seeds)
    weight = np.diff(ends)
    total = np.tensordot(weight, np.sort(values, axis=0), axes=1)
    return total / (0.5 * seeds)


def bootstrap_interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the 95 % bootstrap interval of the interquartile mean.

    Whole curves are drawn with replacement, as many as there are, 1000 times,
    and the quantiles of their interquartile means are taken.

    Args:
        values: `[S, ...]` float. One row for each seed.

    Returns:
        tuple of `[...]` float64: lower and upper end.

    Example:

    >>> low, high = bootstrap_interval(np.array([[1.0], [1.0], [1.0]]))
    >>> float(low[0]), float(high[0])
    (1.0, 1.0)
    """
    generator = np.random.default_rng(0)
    rows = generator.integers(len(values), size=(1000, len(values)))
    means = np.stack([interquartile_mean(values[each]) for each in rows])
    low, high = np.quantile(means, [_TAIL, 1.0 - _TAIL], axis=0)
    return low, high


def on_common_steps(
    curves: Sequence[tuple[np.ndarray, np.ndarray]], points: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """Interpolates curves on the steps that all of them have reached.

    Args:
        curves: Sequence of `(steps [N], values [N])`, steps increasing. NaN
            values (no episode had ended) are left out.
        points: int. Points of the result. Defaults to `200`.

    Returns:
        tuple: steps `[points]` float64, values `[S, points]` float64.

    Example:

    >>> steps, values = on_common_steps(
    ...     [(np.array([0, 10]), np.array([0.0, 1.0])),
    ...      (np.array([5, 20]), np.array([2.0, 2.0]))], points=2)
    >>> steps.tolist(), values.tolist()
    ([5.0, 10.0], [[0.5, 1.0], [2.0, 2.0]])
    """
    finite = [
        (steps[np.isfinite(values)], values[np.isfinite(values)])
        for steps, values in curves
    ]
    if not finite or any(len(steps) == 0 for steps, _ in finite):
        raise ValueError(
            "Expected curves with at least one return each. Received: one "
            "without, from a training in which no episode has ended"
        )
    first = max(steps[0] for steps, _ in finite)
    last = min(steps[-1] for steps, _ in finite)
    if first > last:
        raise ValueError(
            "Expected curves that have steps in common. Received: one that "
            f"ends at {last:.0f}, one that begins at {first:.0f}"
        )
    grid = np.linspace(first, last, points)
    return grid, np.stack([np.interp(grid, *curve) for curve in finite])


def read_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """Reads the complete rows of a progress.csv.

    Returns:
        tuple: names of the columns, and the rows: the values of each, in this
        order. An incomplete last row is left out: it is still being written,
        or its process was stopped.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = (line for line in file if line.endswith("\n"))
            rows = list(csv.reader(lines))
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path}: not a table: {error}") from error
    columns = rows.pop(0) if rows else []
    if columns and not {"env_steps", "updates"} & set(columns):
        raise ValueError(f"{path}: expected a column env_steps or updates")
    return columns, [row for row in rows if len(row) == len(columns)]


def read_curve(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Reads the return by steps, or updates.

    For a training on recorded data it is the return of evaluations, since no
    other episodes are played.

    Returns:
        tuple: environment steps, or else updates, `[N]` float64, and the
        return `[N]` float64, NaN before the first episode has ended.
    """
    columns, rows = read_rows(path)
    names = ("env_steps", "episode_return")
    if "updates" in columns and "env_steps" not in columns:
        names = ("updates", "val_episode_return")
    if names[1] not in columns:
        raise ValueError(f"{path}: holds no {names[1]}")
    indices = [columns.index(name) for name in names]
    try:
        curve = [[float(row[i] or "nan") for i in indices] for row in rows]
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    steps, returns = np.array(curve, np.float64).reshape(-1, 2).T
    return steps, returns
