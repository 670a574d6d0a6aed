"""Fills, saves, kills and resumes a replay buffer of a million frames.

    python benchmarks/million_frames.py

prints the bytes of the buffer, the time to draw a minibatch and the peak memory
of each process. The first process saves 979,200 transitions of 4 x 84 x 84
bytes. The second is killed within its next save, when the buffer has turned.
The third does the same again, and ends.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.append(str(Path(__file__).resolve().parents[1]))

import gymnasium as gym
import numpy as np

from benchmarks.peer_sb3 import peak_rss_mib


class Film(gym.Env):
    """Random frames, of which one in 1000 ends an episode."""

    observation_space = gym.spaces.Box(0, 255, (84, 84), np.uint8)
    action_space = gym.spaces.Discrete(4)
    frames = np.random.default_rng(0).integers(0, 256, (256, 84, 84), np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = int(self.np_random.integers(256))
        return self.frames[self.time], {}

    def step(self, action):
        self.time += 1
        ended = bool(self.np_random.random() < 0.001)
        return self.frames[self.time % 256], float(action), ended, False, {}


def make():
    return gym.wrappers.FrameStackObservation(Film(), 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--epochs", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.folder:
        train(arguments.folder, arguments.epochs)
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--folder", folder, "--epochs"]
        subprocess.run([*command, "1"], check=True)
        before = large_files(folder)
        process = subprocess.Popen([*command, "2"])
        while large_files(folder) <= before:
            if process.poll() is not None:
                raise RuntimeError("Expected a second save")
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        print("killed within a save", flush=True)
        process.wait()
        subprocess.run([*command, "2"], check=True)


def large_files(folder):
    """Returns the names of the files of steps."""
    found = os.scandir(folder)
    return {each.name for each in found if each.stat().st_size > 2**20}


def train(folder, epochs):
    """Trains as many epochs as there are to come, and prints figures."""
    import keras

    import keras_rl2 as rl

    env = gym.vector.SyncVectorEnv([make] * 32)
    replay = rl.ReplayDataset(
        env,
        capacity=1_000_000,
        warm_up=480_000,
        batch_size=32,
        steps_per_round=3200,
        updates_per_round=1,
        rounds_per_epoch=156,
        seed=0,
    )
    layers = [keras.Input((4, 84, 84)), keras.layers.Flatten()]
    agent = rl.DQN(keras.Sequential([*layers, keras.layers.Dense(4)]), seed=0)
    start = time.perf_counter()
    callbacks = [rl.callbacks.Checkpoint(folder)]
    agent.fit(replay, epochs=epochs, callbacks=callbacks, verbose=0)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(100):
        replay.sample(32)
    draw = (time.perf_counter() - start) * 10
    print(
        f"{agent.env_steps} steps in {seconds:.0f} s, "
        f"{len(replay.buffer)} transitions in {replay.buffer.nbytes / 1e9:.2f} "
        f"GB, peak memory {peak_rss_mib() / 1024:.2f} GiB, "
        f"a minibatch in {draw:.2f} ms",
        flush=True,
    )


if __name__ == "__main__":
    main()
