"""Trains what the guide for people who know Keras shows, and draws it.

    python benchmarks/guide_pictures.py seeds replay exploration greedy
    python benchmarks/guide_pictures.py --draw docs

draws guide_seeds.png, guide_replay.png, guide_exploration.png and
guide_greedy.png. Some ten minutes on two idle cores. Curves are kept beside
the other results, one file for each picture and kind of run, so that drawing
needs no training.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from benchmarks import curves

# Kinds of runs of each picture, and how often each is made.
RUNS = {
    "seeds": {"ppo": 5},
    "replay": {"ppo": 3, "sac": 3},
    "exploration": {"0.0003": 4, "0.1": 4},
    "greedy": {"dqn": 1},
}
COLORS = ("tab:blue", "tab:orange")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("pictures", nargs="*", choices=[*RUNS, []])
    parser.add_argument("--draw", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    for picture in arguments.pictures:
        for kind, seeds in RUNS[picture].items():
            for seed in range(seeds):
                run = train(picture, kind, seed)
                curves.keep(_name(picture, kind), seed, run)
    if arguments.draw:
        draw(arguments.draw)


def _name(picture, kind):
    """Returns what the results of a kind of runs are called."""
    return f"guide-{picture}-{kind}"


def train(picture, kind, seed):
    """Makes one run, and returns its curves by the key of the logs."""
    agent, data, steps, keys, validation = globals()[f"make_{picture}"](
        kind, seed
    )
    start = time.perf_counter()
    history = agent.fit(
        data,
        total_steps=steps,
        validation_data=validation,
        verbose=0,
    ).history
    return {
        "seconds": round(time.perf_counter() - start),
        **{key: curves.curve_of(history, key) for key in keys},
    }


def make_seeds(kind, seed):
    """PPO on CartPole as it comes, five times."""
    import keras_rl2 as rl

    data = rl.RolloutDataset(
        "CartPole-v1", num_envs=8, batch_size=256, seed=seed
    )
    agent = rl.PPO.for_env("CartPole-v1", seed=seed)
    return agent, data, 60_000, ["episode_return"], None


def make_replay(kind, seed):
    """The presets of PPO and SAC for Pendulum."""
    import keras_rl2 as rl

    preset = rl.presets.find(kind.upper(), "Pendulum-v1")
    training = rl.Training.from_preset(preset, seed=seed)
    steps = {"ppo": 100_000, "sac": 6_000}[kind]
    validation = rl.EvaluationDataset("Pendulum-v1", 10, num_envs=10, seed=1)
    keys = ["val_episode_return"]
    return training.agent, training.dataset, steps, keys, validation


def make_exploration(kind, seed):
    """PPO on CartPole, with a learning rate that is far too large."""
    import keras

    agent, data, _, _, _ = make_seeds(kind, seed)
    agent.compile(keras.optimizers.Adam(float(kind)))
    return agent, data, 25_000, ["episode_return", "entropy"], None


def make_greedy(kind, seed):
    """DQN on CartPole, where one action in five is random."""
    import keras_rl2 as rl

    data = rl.ReplayDataset("CartPole-v1", capacity=50_000, seed=seed)
    agent = rl.DQN.for_env("CartPole-v1", epsilon=0.2, seed=seed)
    validation = rl.EvaluationDataset("CartPole-v1", 10, num_envs=10, seed=1)
    keys = ["episode_return", "val_episode_return"]
    return agent, data, 30_000, keys, validation


def draw(folder):
    """Draws all pictures from the runs that are kept."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.grid": True})
    plt.rcParams.update({"grid.alpha": 0.3, "savefig.dpi": 100})
    for picture in RUNS:
        figure = globals()[f"draw_{picture}"](plt)
        figure.tight_layout()
        figure.savefig(folder / f"guide_{picture}.png")


def _lines(axes, runs, key, color, label, **style):
    """Draws a line for each run, the first with a label."""
    for index, run in enumerate(runs.values()):
        steps, values = zip(*run[key], strict=True)
        axes.plot(
            steps,
            values,
            color=color,
            linewidth=1,
            label=None if index else label,
            **style,
        )


def draw_seeds(plt):
    """Draws five runs that differ in their seed alone."""
    figure, axes = plt.subplots(figsize=(6, 3))
    runs = curves.kept(_name("seeds", "ppo"))
    for seed, run in runs.items():
        steps, values = zip(*run["episode_return"], strict=True)
        axes.plot(steps, values, linewidth=1, label=f"seed {seed}")
    axes.set_title("PPO on CartPole-v1: five seeds")
    axes.set_xlabel("environment steps")
    axes.set_ylabel("return of the last 100 episodes")
    axes.legend(fontsize="small")
    return figure


def draw_replay(plt):
    """Draws how many steps the two kinds of agents want."""
    figure, axes = plt.subplots(figsize=(6, 3))
    for kind, color in zip(RUNS["replay"], COLORS, strict=True):
        runs = curves.kept(_name("replay", kind))
        label = {"ppo": "PPO, on-policy", "sac": "SAC, replay"}[kind]
        _lines(axes, runs, "val_episode_return", color, label)
    axes.set_xscale("log")
    axes.set_title("Pendulum-v1: steps that were needed, three seeds each")
    axes.set_xlabel("environment steps")
    axes.set_ylabel("greedy return")
    axes.legend(fontsize="small")
    return figure


def draw_exploration(plt):
    """Draws how entropy and return go together."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
    for kind, color in zip(RUNS["exploration"], COLORS, strict=True):
        runs = curves.kept(_name("exploration", kind))
        label = f"learning rate {kind}"
        _lines(left, runs, "entropy", color, label)
        _lines(right, runs, "episode_return", color, label)
    left.set_ylabel("entropy of the policy")
    right.set_ylabel("return of the last 100 episodes")
    for axes in (left, right):
        axes.set_xlabel("environment steps")
    left.legend(fontsize="small")
    figure.suptitle("PPO on CartPole-v1, four seeds each")
    return figure


def draw_greedy(plt):
    """Draws what training and evaluation say of the same policy."""
    figure, axes = plt.subplots(figsize=(6, 3))
    runs = curves.kept(_name("greedy", "dqn"))
    _lines(axes, runs, "val_episode_return", COLORS[0], "val_episode_return")
    _lines(axes, runs, "episode_return", COLORS[1], "episode_return")
    axes.set_title("DQN on CartPole-v1, one action in five at random")
    axes.set_xlabel("environment steps")
    axes.set_ylabel("return")
    axes.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    main()
