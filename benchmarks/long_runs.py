"""Measures what grows in a long training.

    python benchmarks/long_runs.py PPO [--minutes 20]

trains with evaluations, TensorBoard and checkpoints, and prints the slope of
the resident memory after the first quarter, and the least and largest number of
files, descriptors and threads since then.
"""

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

import keras_rl2 as rl

CASES = {"PPO": "CartPole-v1", "DQN": "CartPole-v1", "SAC": "Pendulum-v1"}


class Watch(keras.callbacks.Callback):
    """Measures the process after each epoch, and ends `fit` in time."""

    def __init__(self, folder, seconds):
        super().__init__()
        self.folder, self.seconds = Path(folder), seconds
        self.rows = []

    def on_train_begin(self, logs=None):
        self.start = time.monotonic()

    def on_epoch_end(self, epoch, logs=None):
        seconds = time.monotonic() - self.start
        pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
        self.rows.append(
            (
                seconds,
                pages * os.sysconf("SC_PAGESIZE") / 2**20,
                sum(1 for _ in self.folder.rglob("*")),
                len(os.listdir("/proc/self/fd")),
                threading.active_count(),
            )
        )
        self.model.stop_training |= seconds > self.seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("algorithm", choices=CASES)
    parser.add_argument("--minutes", type=float, default=20.0)
    arguments = parser.parse_args()
    env = CASES[arguments.algorithm]
    agent = getattr(rl, arguments.algorithm).for_env(env, seed=0)
    # A buffer that is full before memory is compared.
    sizes = {"seed": 0} if agent.on_policy else {"seed": 0, "capacity": 5000}
    kind = rl.RolloutDataset if agent.on_policy else rl.ReplayDataset
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(folder, arguments.minutes * 60)
        agent.fit(
            kind(env, **sizes),
            epochs=1_000_000,
            validation_data=rl.EvaluationDataset(env, episodes=5, seed=0),
            validation_freq=20,
            callbacks=[
                rl.callbacks.TensorBoard(f"{folder}/logs"),
                rl.callbacks.Checkpoint(f"{folder}/kept", every_seconds=30),
                watch,
            ],
            verbose=0,
        )
    rows = np.array(watch.rows)
    rows = rows[rows[:, 0] > arguments.minutes * 15]
    slope = np.polyfit(rows[:, 0] / 3600, rows[:, 1], 1)[0]
    print(
        f"{arguments.algorithm}: {len(watch.rows)} epochs, "
        f"{agent.env_steps} steps; resident memory {rows[-1, 1]:.0f} MiB, "
        f"{slope:+.1f} MiB an hour"
    )
    for name, column in zip(
        ("files", "descriptors", "threads"), rows[:, 2:].T, strict=True
    ):
        print(f"  {name}: {column.min():.0f} to {column.max():.0f}")


if __name__ == "__main__":
    main()
