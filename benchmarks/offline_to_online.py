"""Trains from recorded data and then online, beside the same from scratch.

    python benchmarks/offline_to_online.py --seeds 3 --data FOLDER
    python benchmarks/offline_to_online.py --draw docs/PICTURE.png

CQL on Pendulum, IQL on CartPole. Both sides take 20,000 steps online, and 10
greedy episodes are played every 1000. One begins with what it has learned from
the data of `offline.py`, which goes on to be half of each of its minibatches;
the other knows nothing.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from benchmarks import curves
from benchmarks.offline import CASES
from benchmarks.offline import data_of

STEPS = 20_000
TASKS = {"Pendulum-v1": "pendulum-CQL", "CartPole-v1": "cartpole-IQL"}
SIDES = {True: "offline, then online", False: "from scratch"}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []])
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--data", type=Path, help="where data is made or found")
    parser.add_argument("--draw", type=Path)
    arguments = parser.parse_args()
    folder = arguments.data or Path(tempfile.mkdtemp())
    for seed in range(arguments.seeds):
        for env_id in arguments.tasks or TASKS:
            for offline in SIDES:
                if str(seed) not in curves.kept(name_of(env_id, offline)):
                    run = train(env_id, offline, seed, folder)
                    curves.keep(name_of(env_id, offline), seed, run)
    if arguments.draw:
        draw(arguments.draw)


def name_of(env_id, offline):
    """Returns the name that a curve is kept under."""
    side = "offline" if offline else "scratch"
    return f"{algorithm_of(env_id).lower()}-{env_id}-{side}"


def algorithm_of(env_id):
    """Returns the name of the class that learns a task."""
    return TASKS[env_id].partition("-")[2]


def train(env_id, offline, seed, folder):
    """Trains one side, and returns its curve."""
    import gymnasium as gym
    import keras

    import keras_rl2 as rl

    case = CASES[TASKS[env_id]]
    agent = getattr(rl, algorithm_of(env_id)).for_env(
        env_id, hidden=case["hidden"], seed=seed, **case["arguments"]
    )
    agent.compile(keras.optimizers.Adam(case["learning_rate"]))
    data = rl.ReplayDataset(env_id, batch_size=case["batch_size"], seed=seed)
    watched = rl.EvaluationDataset(env_id, episodes=10, num_envs=10, seed=1000)
    curve = []
    if offline:
        env = gym.make(env_id)
        recorded = rl.OfflineDataset(
            data_of(case, folder),
            batch_size=case["batch_size"],
            updates_per_epoch=case["updates"],
            observation_space=env.observation_space,
            action_space=env.action_space,
            seed=seed,
        )
        history = agent.fit(recorded, validation_data=watched, verbose=0)
        curve = [[0, round(history.history["val_episode_return"][-1], 2)]]
        data = rl.MixedDataset(recorded, data, ratio=0.5)
    history = agent.fit(
        data, total_steps=STEPS, validation_data=watched, verbose=0
    )
    curve += curves.curve_of(history.history, "val_episode_return")
    return {"last": curve[-1][1], "curve": curve}


def draw(path):
    """Draws what was kept: all seeds, and their median."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(9, 3.6))
    for axes, env_id in zip(both, TASKS, strict=True):
        for offline, label in SIDES.items():
            color = "tab:blue" if offline else "tab:orange"
            runs = curves.kept(name_of(env_id, offline)).values()
            seeds = [run["curve"] for run in runs]
            for each in seeds:
                axes.plot(*zip(*each, strict=True), color=color, linewidth=0.5)
            axes.plot(*median_of(seeds), color=color, linewidth=2, label=label)
        axes.set_title(f"{algorithm_of(env_id)}, {env_id}")
        axes.set_xlabel("steps online")
        axes.set_ylabel("greedy return")
        axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def median_of(seeds):
    """Returns the steps and returns in the middle of several curves, epoch by
    epoch: seeds reach the ends of their epochs some steps apart.
    """
    epochs = zip(*seeds, strict=True)
    middle = [
        map(statistics.median, zip(*epoch, strict=True)) for epoch in epochs
    ]
    return zip(*middle, strict=True)


if __name__ == "__main__":
    main()
