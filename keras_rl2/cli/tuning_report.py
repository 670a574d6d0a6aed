"""What the trials of a study found: tables and pictures."""

import csv
import importlib.util
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_rl2.cli import studies
from keras_rl2.cli.tune_folder import TuneFolder
from keras_rl2.files.atomic_files import replacing
from keras_rl2.presets import SearchSpace

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

_SHOWN = 10
_FEWEST_FOR_IMPORTANCE = 4
_INCHES = (6.4, 4.2)
_DPI = 120
_LINE = "{:>5}  {:>10}  {}"


def print_trial(study: "optuna.Study", trial: "FrozenTrial") -> None:
    """Prints how one trial went.

    Args:
        study: `optuna.Study`. The one it is of.
        trial: `optuna.trial.FrozenTrial`. That is over.
    """
    state = trial.state.name.lower()
    text = f"trial {trial.number}: "
    if trial.value is not None and state == "complete":
        text += f"return {trial.value:.1f}"
    elif trial.intermediate_values:
        step, value = max(trial.intermediate_values.items())
        text += f"{state} at {step:,} steps, return {value:.1f}"
    else:
        text += state
    if best := studies.complete(study):
        text += f" (best {best[0].value:.1f}, of trial {best[0].number})"
    print(text, flush=True)


def print_all(study: "optuna.Study", steps: int) -> None:
    """Prints the best trials, and what the best of them was.

    Args:
        study: `optuna.Study`.
        steps: int. Environment steps of a run.
    """
    found, best = studies.done(study), studies.complete(study)
    given_up = len(found) - len(best)
    print(
        f"{len(found)} trials, {len(best)} of them to {steps:,} steps, "
        f"{given_up} given up"
    )
    if not best:
        return
    names = sorted({name for trial in best for name in trial.params})
    print(_LINE.format("trial", "return", "settings"))
    for trial in best[:_SHOWN]:
        shown = " ".join(
            f"{name.rpartition('.')[2]}={_short(trial.params[name])}"
            for name in names
            if name in trial.params
        )
        print(_LINE.format(trial.number, f"{trial.value:.1f}", shown))


def write_table(
    path: Path, trials: "Sequence[FrozenTrial]", space: SearchSpace
) -> None:
    """Writes all trials, one row each.

    Args:
        path: Path. The file.
        trials: Sequence of `optuna.trial.FrozenTrial`.
        space: `SearchSpace`. What they varied.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["trial", "state", "return", "steps", *space.ranges])
    for trial in trials:
        reports = trial.intermediate_values
        steps = max(reports, default=0)
        value = reports.get(steps, "") if trial.value is None else trial.value
        drawn = [trial.params.get(name, "") for name in space.ranges]
        writer.writerow(
            [trial.number, trial.state.name.lower(), value, steps, *drawn]
        )
    with replacing(path) as unfinished:
        unfinished.write_text(text.getvalue(), encoding="utf-8", newline="")


def draw(study: "optuna.Study", folder: TuneFolder) -> list[Path]:
    """Draws how the search went, and which settings mattered.

    Args:
        study: `optuna.Study`.
        folder: `TuneFolder`. Where pictures go.

    Returns:
        list of Path: the pictures there are.
    """
    if importlib.util.find_spec("matplotlib") is None:
        print("no pictures: pip install matplotlib")
        return []
    best = studies.complete(study)
    if not best:
        return []
    _draw_history(study, folder.history)
    shares = importance(study)
    if not shares:
        print(
            "no picture of importance: that takes at least "
            f"{_FEWEST_FOR_IMPORTANCE} trials that were not given up, with "
            "different returns"
        )
        return [folder.history]
    _draw_importance(shares, len(best), folder.importance)
    return [folder.history, folder.importance]


def importance(study: "optuna.Study") -> dict[str, float]:
    """Returns how much of the best trials' return each setting decides.

    Args:
        study: `optuna.Study`.

    Returns:
        dict of shares by names, largest first; empty for too few trials.

    Reference:
        [Watanabe et al., 2023](https://arxiv.org/abs/2304.10255).
    """
    values = {trial.value for trial in studies.complete(study)}
    if len(values) < _FEWEST_FOR_IMPORTANCE:
        return {}
    import optuna

    # Needs nothing that is not installed with Optuna.
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _draw_history(study: "optuna.Study", path: Path) -> None:
    """Draws what each trial gave, and the best so far."""
    figure, panel = _panel()
    found = studies.done(study)
    best, highest = [], float("-inf")
    for trial in found:
        if trial.value is not None and trial.state.name == "COMPLETE":
            highest = max(highest, trial.value)
        best.append(highest)
    whole = [t for t in found if t.state.name == "COMPLETE"]
    panel.plot(
        [t.number for t in whole],
        [t.value for t in whole],
        "o",
        label="to the end",
    )
    pruned = [t for t in found if t not in whole and t.intermediate_values]
    panel.plot(
        [t.number for t in pruned],
        [t.intermediate_values[max(t.intermediate_values)] for t in pruned],
        "x",
        color="tab:gray",
        label="given up",
    )
    panel.step(
        [t.number for t in found], best, where="post", label="best so far"
    )
    panel.set_xlabel("trial")
    panel.set_ylabel("return, over seeds")
    panel.xaxis.get_major_locator().set_params(integer=True)
    panel.set_title(study.study_name)
    panel.grid(alpha=0.3)
    panel.legend()
    _save(figure, path)


def _draw_importance(shares: dict[str, float], trials: int, path: Path) -> None:
    """Draws the settings as bars."""
    figure, panel = _panel()
    names = list(reversed(shares))
    bars = panel.barh(names, [shares[name] for name in names])
    panel.bar_label(bars, [f"{shares[name]:.0%}" for name in names], padding=3)
    panel.set_xlim(0.0, 1.15 * max(shares.values()))
    panel.set_xlabel("share in what sets the best trials apart (PED-ANOVA)")
    panel.set_title(f"Which settings mattered, {trials} trials")
    panel.grid(axis="x", alpha=0.3)
    _save(figure, path)


def _panel() -> tuple[Any, Any]:
    """Returns an empty picture."""
    # Not pyplot, which would ask for a window; this draws with Agg.
    from matplotlib.figure import Figure

    figure = Figure(figsize=_INCHES, layout="constrained")
    return figure, figure.subplots()


def _save(figure: Any, path: Path) -> None:
    """Writes a picture in the place of what is there."""
    with replacing(path) as unfinished:
        figure.savefig(unfinished, dpi=_DPI)


def _short(value: Any) -> str:
    """Returns a value with few digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
