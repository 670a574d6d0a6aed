"""Trains PPO and DQN on MinAtar's Breakout and draws their learning curves.

    python benchmarks/minatar_curves.py ppo dqn --seeds 3
    python benchmarks/minatar_curves.py --draw docs/minatar_breakout.png

Needs `minatar`. Curves are kept beside the other results, one file for each
algorithm, and drawn from there beside what is published: by Young and Tian,
2019, read off their figure (DQN, actor-critic with traces of 0.8), and by the
README of gymnax (PPO, at its end).
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from benchmarks import curves

NAME = "minatar-breakout-{}"
ENV = "MinAtar/Breakout-v1"
STEPS = {"ppo": 3_000_000, "dqn": 300_000}
# Millions of frames, and mean returns of the last 100 episodes.
PUBLISHED = {
    "DQN, Young and Tian": ([0.1, 0.5, 1, 2, 3, 5], [4.5, 8.3, 9, 9.6, 10, 10]),
    "AC(0.8), Young and Tian": (
        [0.1, 0.5, 1, 2, 3, 5],
        [4, 7, 9.3, 14, 16, 17],
    ),
}
PUBLISHED_PPO = 28.0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("algorithms", nargs="*", choices=[*STEPS, []])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draw", type=Path)
    arguments = parser.parse_args()
    for name in arguments.algorithms:
        for seed in range(arguments.seeds):
            curves.keep(NAME.format(name), seed, train(name, seed))
    if arguments.draw:
        draw(arguments.draw)


def make(name, seed):
    """Returns the agent and the dataset of an algorithm."""
    import keras
    from minatar import gym as minatar_gym

    import keras_rl2 as rl

    # Gymnasium 1 does not look for the environments of other packages.
    minatar_gym.register_envs()
    if name == "ppo":
        data = rl.RolloutDataset(
            ENV,
            num_envs=32,
            horizon=128,
            passes=4,
            batch_size=1024,
            rounds_per_epoch=6,
            seed=seed,
        )
        agent = rl.PPO.for_env(data.env, entropy_coefficient=0.01, seed=seed)
        agent.compile(keras.optimizers.Adam(1e-3, epsilon=1e-5))
        return agent, data
    # As published, but for Adam in place of a centered RMSprop, and the
    # defaults of network, gradient clipping and rounds.
    data = rl.ReplayDataset(
        ENV,
        capacity=100_000,
        batch_size=32,
        steps_per_round=64,
        updates_per_round=64,
        warm_up=5000,
        rounds_per_epoch=160,
        seed=seed,
    )
    agent = rl.DQN.for_env(
        data.env,
        epsilon=keras.optimizers.schedules.PolynomialDecay(1.0, 100_000, 0.1),
        double=False,
        normalization="none",
        tau=1.0,
        target_every=1000,
        seed=seed,
    )
    agent.compile(keras.optimizers.Adam(2.5e-4))
    return agent, data


def train(name, seed):
    """Trains, and returns the curve, the greedy return and the seconds."""
    agent, data = make(name, seed)
    start = time.perf_counter()
    history = agent.fit(data, total_steps=STEPS[name], verbose=0).history
    seconds = time.perf_counter() - start
    score = agent.evaluate(ENV, episodes=50, seed=seed + 1000)
    return {
        "last_100": round(float(history["episode_return"][-1]), 2),
        "greedy": round(score["episode_return"], 2),
        "seconds": round(seconds),
        "curve": curves.curve_of(history, "episode_return"),
    }


def draw(path):
    """Draws all curves beside what is published."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for color, name in zip(("tab:blue", "tab:orange"), STEPS, strict=True):
        for index, run in enumerate(curves.kept(NAME.format(name)).values()):
            steps, returns = zip(*run["curve"], strict=True)
            axes.plot(
                [step / 1e6 for step in steps],
                returns,
                color=color,
                linewidth=1,
                label=None if index else f"{name.upper()}, keras_rl2",
            )
    for style, (name, curve) in zip(
        ("--", ":"), PUBLISHED.items(), strict=True
    ):
        axes.plot(*curve, style, color="black", linewidth=1, label=name)
    axes.axhline(
        PUBLISHED_PPO,
        color="gray",
        linewidth=1,
        label="PPO, gymnax, at its end",
    )
    axes.set_xlim(0, max(STEPS.values()) / 1e6)
    axes.set_xlabel("frames (in millions)")
    axes.set_ylabel("return of the last 100 episodes")
    axes.set_title("MinAtar Breakout")
    axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
