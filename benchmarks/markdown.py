"""BENCHMARKS.md from the runs that were kept."""

import json
import statistics
from operator import truediv

import numpy as np

from keras_rl2.cli.plot import bootstrap_interval
from keras_rl2.cli.plot import interquartile_mean

OURS, PEER = "keras_rl2", "stable-baselines3"
OFFLINE_PEER = "d3rlpy"
#: By how much, as a share of the peer's mean, a row may be worse.
TOLERANCE = 0.1
#: Seeds without which a row says nothing of that.
FEWEST_SEEDS = 3
HEAD = """\
# Benchmarks

This page compares presets of this library with Stable-Baselines3, the peer. A
preset holds the published settings of an algorithm for one environment, and
both libraries train with them. This command trains both and writes the page:

    python benchmarks/table.py --peer VENV/bin/python

`VENV` is a virtual environment with Stable-Baselines3. `benchmarks/results`
contains all runs, and the table uses each seed that both libraries have run.
One setting differs. Some presets make 64 updates after every 64 environment
steps. For these presets, Stable-Baselines3 uses the published numbers: 1 update
after every step (SAC, TD3), or 4 updates after every 4 steps (DQN).

- **Return**: each seed plays 20 greedy episodes after training. The table shows
  the interquartile mean over the seeds, with its 95 % bootstrap interval.
- **Steps/s** is the number of environment steps per second of training, as the
  median over the seeds. Two runs at a time shared two cores, with one thread
  for each run. At times, other programs used these cores too.
- **Ratio** is our steps/s divided by the peer's, as the median over the seeds.
  The two libraries ran each seed one after the other, so other programs change
  the ratio less than the steps/s.
- **MiB** is the peak memory of the process, as the median over the seeds.
- **Peer's** is the peer's number for the column to the left of it.
- **Holds** is "yes" if **Ratio** is above 1, and our **Return** is at most 10 %
  worse than the peer's. It is "open" with fewer than three seeds.

| Preset | Steps | Seeds | Return | Peer's return | Steps/s | Peer's | Ratio \
| MiB | Peer's | Holds |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
"""
OFFLINE_HEAD = """

## From recorded data

These agents learn from recorded steps, without an environment. Agents of this
library record the data: SAC during its training on Pendulum, a half-trained PPO
on Hopper, and a half-trained PPO and a random policy on CartPole. The peer,
d3rlpy, trains on the same data, with the same number of updates, layer widths,
learning rates and sizes of minibatches. This command makes the data, trains
both libraries and writes the table:

    python benchmarks/offline.py --peer VENV/bin/python

- **Case** is the environment and the agent, for example CartPole-v1 with CQL.
- **Data** is the mean return of the recorded episodes. For Pendulum, only the
  last quarter of the episodes counts, after SAC has learned.
- **Return** is the mean return of greedy episodes, one number for each seed. On
  Pendulum, the greedy episodes begin in the same states as that last quarter.
- **Q above** is the mean Q-value of our critics for the recorded steps, minus
  the mean discounted return from these steps on. It is above 0 if the learned
  policy is better than the recorded one, or if the critics overestimate.
- **Updates/s** is the number of updates per second, as the median over the
  seeds, with one thread for each run. Up to 16 runs at a time shared the
  machine with 16 cores; runs on the machine with 2 cores were alone.
- **Ratio** is our updates/s divided by d3rlpy's, as the median over the seeds.
- **d3rlpy's** is d3rlpy's number for the column to the left of it. A "-" means
  that d3rlpy was not run.

| Case | Updates | Data | Return | d3rlpy's | Q above | Updates/s | d3rlpy's \
| Ratio |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def write(folder, path):
    """Writes the table of all presets that both sides have run."""
    kept = [json.loads(f.read_text()) for f in sorted(folder.glob("*.json"))]
    rows = [row(each) for each in kept if seeds_of(each)]
    if not rows:
        return
    lines = HEAD + "\n".join(rows) + "\n" + returns_of(kept)
    path.write_text(lines + offline_table(folder / "offline") + made_on(kept))


def offline_table(folder):
    """Returns the part on agents that learn from recorded data."""
    kept = [json.loads(f.read_text()) for f in sorted(folder.glob("*.json"))]
    rows = [offline_row(each) for each in kept if OURS in each["runs"]]
    if not rows:
        return ""
    return OFFLINE_HEAD + "\n".join(rows) + "\n" + offline_made_on(kept)


def offline_made_on(kept):
    """Returns which cases were run on which machine."""
    cases = {}
    for each in kept:
        for run in each["runs"].get(OURS, {}).values():
            cases.setdefault(run["machine"], set()).add(f"`{each['name']}`")
    lines = [
        f"- {machine}: {', '.join(sorted(names))}"
        for machine, names in sorted(cases.items())
    ]
    text = "\nThe agents of this library were trained on these machines:\n\n"
    return text + "\n".join(lines) + "\n"


def offline_row(kept):
    """Returns a line of a case of `offline.py`."""
    ours, peer = (
        list(kept["runs"].get(side, {}).values())
        for side in (OURS, OFFLINE_PEER)
    )
    speeds = [
        [run["updates_per_second"] for run in side] for side in (ours, peer)
    ]
    cells = [
        f"`{kept['name']}`",
        f"{kept['preset']['updates']:,}".replace(",", " "),
        f"{ours[0]['behavior']:.1f}",
        *(
            ", ".join(f"{run['return']:.1f}" for run in side) or "-"
            for side in (ours, peer)
        ),
        ", ".join(
            f"{run['q_overestimation']:.0f}"
            for run in ours
            if run["q_overestimation"] is not None
        ),
        *(f"{statistics.median(each):.0f}" if each else "-" for each in speeds),
        # The peer's last seeds may be missing.
        f"{statistics.median(map(truediv, *speeds)):.2f}" if peer else "-",
    ]
    return f"| {' | '.join(cells)} |"


def seeds_of(kept):
    """Returns the seeds that both sides have run."""
    ours, peer = (set(kept["runs"].get(side, {})) for side in (OURS, PEER))
    return sorted(ours & peer, key=int)


def column(kept, side, key):
    """Returns one number of each seed."""
    runs = kept["runs"][side]
    return np.array([runs[seed][key] for seed in seeds_of(kept)])


def row(kept):
    """Returns a line of the table."""
    returns, speeds, memory = (
        [column(kept, side, key) for side in (OURS, PEER)]
        for key in ("return", "steps_per_second", "peak_rss_mib")
    )
    ratio = statistics.median(speeds[0] / speeds[1])
    means = [float(interquartile_mean(each)) for each in returns]
    good = means[0] >= means[1] - TOLERANCE * abs(means[1])
    cells = [
        f"`{kept['name']}`",
        f"{kept['preset']['total_steps']:,}".replace(",", " "),
        str(len(seeds_of(kept))),
        *(with_interval(each) for each in returns),
        *(f"{statistics.median(each):.0f}" for each in speeds),
        f"{ratio:.2f}",
        *(f"{statistics.median(each):.0f}" for each in memory),
        verdict(good, ratio > 1, len(seeds_of(kept))),
    ]
    return f"| {' | '.join(cells)} |"


def verdict(good, fast, seeds):
    """Says whether a row holds."""
    if seeds < FEWEST_SEEDS:
        return "open"
    if good:
        return "yes" if fast else "speed no"
    return "return no" if fast else "no"


def with_interval(values):
    """Returns the interquartile mean and its interval."""
    low, high = bootstrap_interval(values[:, None])
    mean = float(interquartile_mean(values))
    return f"{mean:.1f} ({float(low[0]):.1f} to {float(high[0]):.1f})"


def returns_of(kept):
    """Returns the returns of each seed, by preset."""
    text = "Each number is the return of one seed, as in the table:"
    lines = ["", "## Every seed", "", text, ""]
    for each in kept:
        if not seeds_of(each):
            continue
        ours, peer = (
            ", ".join(f"{value:.1f}" for value in column(each, side, "return"))
            for side in (OURS, PEER)
        )
        lines += [f"- `{each['name']}`: {ours}; peer {peer}"]
    return "\n".join(lines) + "\n"


def made_on(kept):
    """Returns the machines and versions of all runs."""
    found = {"machine": set(), "ours": set(), "peer": set()}
    for each in kept:
        for side, runs in each["runs"].items():
            for run in runs.values():
                found["machine"].add(run["machine"])
                found["ours" if side == OURS else "peer"].add(run["version"])
    return (
        "\n## Made on\n\n"
        "The presets were trained with:\n\n"
        f"- {'; '.join(sorted(found['machine']))}\n"
        f"- keras_rl2 with {'; '.join(sorted(found['ours']))}\n"
        f"- Stable-Baselines3 {', '.join(sorted(found['peer']))}\n"
    )
