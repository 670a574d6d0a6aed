"""Compares what agents learn in the graph and on Gymnasium's environments.

    python benchmarks/graph_learning.py --seeds 10

trains agents with the same settings on both, on three tasks, and judges each
by greedy episodes in Gymnasium's environment. It prints the interquartile mean
(IQM) of the returns, and the 95 % interval of the difference, from a bootstrap
over seeds: an interval with 0 in it shows no difference.
"""

import argparse
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import gymnasium as gym
import numpy as np

import keras_rl2 as rl
from keras_rl2.cli.plot import interquartile_mean

# Algorithm, environments and steps, which do not always suffice.
TASKS = {
    "CartPole-v1": ("PPO", 8, 20_000),
    "Acrobot-v1": ("A2C", 8, 30_000),
    "Pendulum-v1": ("PPO", 8, 60_000),
}


def train(task, in_graph, seeds):
    """Returns the greedy return of each seed."""
    algorithm, num_envs, steps = TASKS[task]

    def make_env():
        if in_graph:
            return rl.envs.GraphVectorEnv(task, num_envs=num_envs)
        return gym.make_vec(task, num_envs=num_envs, vectorization_mode="sync")

    trained = rl.train_seeds(
        lambda seed: getattr(rl, algorithm).for_env(task, seed=seed),
        lambda seed: rl.RolloutDataset(make_env(), seed=seed),
        # Other seeds, for other episodes.
        range(100 * in_graph, 100 * in_graph + seeds),
        total_steps=steps,
    )
    return np.array(
        [
            agent.evaluate(task, episodes=10, seed=1000)["episode_return"]
            for agent in trained.agents
        ]
    )


def interval(ours, theirs, samples=10_000):
    """Returns the 95 % interval of the difference of two IQMs."""
    generator = np.random.default_rng(0)
    drawn = [
        [
            interquartile_mean(generator.choice(each, len(each)))
            for _ in range(samples)
        ]
        for each in (ours, theirs)
    ]
    return np.percentile(np.subtract(*drawn), [2.5, 97.5])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    for task, (algorithm, *_) in TASKS.items():
        graph, gymnasium = (
            train(task, in_graph, arguments.seeds) for in_graph in (True, False)
        )
        low, high = interval(graph, gymnasium)
        print(
            f"{algorithm}, {task}: IQM in the graph "
            f"{interquartile_mean(graph):.1f}, on Gymnasium "
            f"{interquartile_mean(gymnasium):.1f}, difference from {low:.1f} "
            f"to {high:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
