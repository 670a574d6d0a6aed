"""Trains DQN on clicks: by its defaults, and with few updates and slow targets.

    python benchmarks/recommenders.py

prints the mean greedy return of five seeds on two tasks of `chance_tasks.py`,
for both settings.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.append(str(Path(__file__).resolve().parents[1]))

import keras
import numpy as np

import keras_rl2 as rl
from benchmarks import chance_tasks

SLOW = {"hidden": (64, 64), "tau": 1.0, "target_every": 1000}
FEW = {"batch_size": 32, "updates_per_round": 16}


def main():
    for task in ("Clicks-v0", "Visitors-v0"):
        print(f"{task}, defaults: {returned(task, {}, {}):.2f}", flush=True)
        print(f"{task}, slow targets: {returned(task, SLOW, FEW):.2f}")


def returned(task, settings, sizes):
    """Returns the mean greedy return after trainings of five seeds."""
    steps, episodes = chance_tasks.TASKS[task]

    def make_agent(seed):
        agent = rl.DQN.for_env(task, seed=seed, **settings)
        if settings:
            agent.compile(keras.optimizers.Adam(1e-4))
        return agent

    def make_dataset(seed):
        return rl.ReplayDataset(task, seed=seed, **sizes)

    trained = rl.train_seeds(
        make_agent, make_dataset, range(5), total_steps=steps
    )
    played = [
        agent.evaluate(task, episodes=episodes, seed=1000)
        for agent in trained.agents
    ]
    return np.mean([each["episode_return"] for each in played])


if __name__ == "__main__":
    main()
