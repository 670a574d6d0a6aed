"""Draws the learning curves of each agent, beside its peer's.

    python benchmarks/agent_curves.py

writes docs/curves/AGENT_light.svg and AGENT_dark.svg from what
`defaults.py --curves` and `offline.py --curves` have kept. A line is the mean
of the seeds, a band reaches from the lowest to the highest of them, and a
dotted line is the mean return of recorded episodes.
"""

import io
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from benchmarks import curves
from benchmarks import defaults
from benchmarks import markdown
from benchmarks import offline
from benchmarks.results import Results
from keras_rl2.cli.plot import on_common_steps

FOLDER = defaults.HERE.parent / "docs" / "curves"
WIDTH, HEIGHT = 4.2, 3.3
#: Blue and orange of Okabe and Ito, which the colour-blind tell apart.
LINES = {
    "light": (("#0072b2", "-"), ("#d55e00", "--")),
    "dark": (("#56b4e9", "-"), ("#e69f00", "--")),
}
TEXT = {"light": "#333333", "dark": "#cccccc"}
COLORED = (
    *("text.color", "axes.labelcolor", "axes.edgecolor"),
    *("xtick.color", "ytick.color"),
)
STYLE = {
    "svg.hashsalt": "keras_rl2",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def main():
    for algorithm in (*defaults.CURVES, *offline.CURVES):
        if panels := panels_of(algorithm):
            for theme in TEXT:
                path = FOLDER / f"{algorithm.lower()}_{theme}.svg"
                path.write_text(drawn(panels, theme), "utf-8")
                print(path)


def panels_of(algorithm):
    """Returns the curves of an agent, by task and label."""
    if algorithm in offline.CURVES:
        panels = {}
        for case in offline.CURVES[algorithm]:
            found = {
                side: list(curves.kept(f"{case}-{side}").values())
                for side in (markdown.OURS, markdown.OFFLINE_PEER)
            }
            if ours := found[markdown.OURS]:
                # A peer's line is of as many seeds.
                panels[offline.CASES[case]["env"]] = {
                    side: each
                    for side, each in found.items()
                    if len(each) == len(ours)
                }
        return panels
    contrib = algorithm in defaults.OF_CONTRIB
    labels = {
        defaults.OURS: "keras_rl2",
        defaults.PEER: "sb3-contrib" if contrib else "Stable-Baselines3",
    }
    panels = {}
    for task in defaults.CURVES[algorithm]:
        name = f"{algorithm}-{task}"
        kept = Results.of(defaults.KEPT, name, defaults.settings_of(name))
        found = {}
        for side, label in labels.items():
            runs = list(kept.runs.get(side, {}).values())
            if runs and all("curve" in run for run in runs):
                found[label] = runs
        if labels[defaults.OURS] in found:
            panels[task] = found
    return panels


def drawn(panels, theme):
    """Returns the picture of an agent, a panel for each task, as SVG."""
    with matplotlib.rc_context(STYLE | dict.fromkeys(COLORED, TEXT[theme])):
        figure = Figure((WIDTH * len(panels), HEIGHT), layout="constrained")
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for panel, (task, found) in zip(axes, panels.items(), strict=True):
            for (color, style), label in zip(LINES[theme], found, strict=False):
                steps, values = on_common_steps(
                    [np.array(run["curve"]).T for run in found[label]], 60
                )
                band = {"color": color, "alpha": 0.2, "linewidth": 0.0}
                panel.fill_between(steps, values.min(0), values.max(0), **band)
                line = {"color": color, "label": label}
                panel.plot(steps, values.mean(0), style, **line)
            recorded = next(iter(found.values()))[0].get("behavior")
            if recorded is not None:
                line = {"color": TEXT[theme], "label": "recorded episodes"}
                panel.axhline(recorded, linestyle=":", **line)
            panel.set_xlabel(
                "environment steps" if recorded is None else "updates"
            )
            panel.set_title(task, fontsize=11.0)
            panel.set_xlim(0.0)
            panel.locator_params("x", nbins=4)
            panel.xaxis.set_major_formatter("{x:,.0f}")
            panel.grid(color=TEXT[theme], alpha=0.15)
        axes[0].set_ylabel("episode return")
        lines = {line.get_label(): line for each in axes for line in each.lines}
        place = {"loc": "outside upper center", "ncols": 3, "frameon": False}
        figure.legend(handles=list(lines.values()), **place)
        file = io.StringIO()
        # No date and no version, so that the same curves are the same file.
        undated = dict.fromkeys(("Date", "Creator"))
        figure.savefig(file, format="svg", transparent=True, metadata=undated)
    return file.getvalue()


if __name__ == "__main__":
    main()
