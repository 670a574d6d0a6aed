"""`keras-rl2 plot`: learning curves of trainings."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

from keras_rl2.cli.argument_types import count
from keras_rl2.cli.errors import CommandError
from keras_rl2.cli.errors import require_modules
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.saving.atomic_files import replacing

if TYPE_CHECKING:
    import numpy as np

SUMMARY = "draw learning curves: mean over seeds, and how sure it is"
_INCHES = (6.4, 4.2)


class _Curve(NamedTuple):
    """The learning curve of one algorithm in one environment."""

    label: str
    environment: str
    seeds: int
    unit: str
    steps: "np.ndarray"
    mean: "np.ndarray"
    low: "np.ndarray"
    high: "np.ndarray"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "runs",
        metavar="RUNS",
        nargs="+",
        help="folders with progress.csv files, at any depth",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        default="learning_curves.png",
        help="picture; png, svg or pdf (default: learning_curves.png)",
    )
    parser.add_argument(
        "--dpi", type=count, default=120, help="dots per inch (default: 120)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Draws the figure, and prints the end of each curve."""
    require_modules("plot", "pip install matplotlib", "matplotlib")
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
    return 0


def _groups(runs: Sequence[str]) -> dict[Path, list[Path]]:
    """Returns files of progress by the folder of all their seeds."""
    groups: dict[Path, list[Path]] = {}
    for run in map(Path, runs):
        if not run.exists():
            raise FileNotFoundError(f"{run}: no such file or folder")
        files = [run] if run.is_file() else sorted(run.rglob("progress.csv"))
        if not files:
            raise CommandError(f"{run}: no progress.csv in it")
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
    from keras_rl2.cli import learning_curves
    from keras_rl2.cli import progress_file

    try:
        steps, values = learning_curves.on_common_steps(
            [progress_file.read_curve(file) for file in files]
        )
    except CommandError:
        raise
    except ValueError as error:
        raise CommandError(f"{folder}: {error}") from error
    mean = learning_curves.interquartile_mean(values)
    low, high = learning_curves.bootstrap_interval(values)
    label, environment, unit = folder.name, "return", "steps"
    if (preset := RunFolder(files[0].parent)).preset.is_file():
        settings = preset.read_preset()
        label = str(settings.get("algorithm", label))
        environment = str(settings.get("environment", environment))
        unit = "updates" if settings.get("updates") else unit
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
    # Not pyplot, which would ask for a window; this draws with Agg.
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
    steps = curves[0].unit == "steps"
    panel.set_xlabel("environment steps" if steps else "updates")
    of = "last 100 episodes" if steps else "evaluations"
    panel.set_ylabel(f"return (sum of rewards), {of}")
    panel.grid(alpha=0.3)
    panel.legend()


def _seeds(seeds: int) -> str:
    """Returns the number of seeds as text."""
    return "1 seed" if seeds == 1 else f"{seeds} seeds"
