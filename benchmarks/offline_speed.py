"""Times `OfflineDataset`: how soon, how fast, and in how much memory.

    python benchmarks/offline_speed.py --gib 4

makes its data in a temporary folder, and prints the seconds from a Minari
folder of a million transitions to the first minibatch, the minibatches of 1000
a second, and the resident memory of a training on a dataset that streams.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

EPISODE = 1000
NUMBERS, ACTIONS = 17, 6


def write_folder(folder, episodes, numbers):
    """Writes a dataset as Minari has it, of floats that mean nothing."""
    import h5py
    import numpy as np

    (folder / "data").mkdir(parents=True)
    generator = np.random.default_rng(0)
    observations = generator.normal(size=(EPISODE + 1, numbers))
    actions = generator.uniform(-1, 1, (EPISODE, ACTIONS)).astype("float32")
    ends = np.arange(EPISODE) == EPISODE - 1
    bound = [1.0] * ACTIONS
    box = {"type": "Box", "dtype": "float32", "shape": [ACTIONS]}
    metadata = {
        "observation_space": json.dumps(
            {
                "type": "Box",
                "dtype": "float64",
                "shape": [numbers],
                "low": [-float("inf")] * numbers,
                "high": [float("inf")] * numbers,
            }
        ),
        "action_space": json.dumps(
            {**box, "low": [-1.0] * ACTIONS, "high": bound}
        ),
    }
    (folder / "data" / "metadata.json").write_text(json.dumps(metadata))
    with h5py.File(folder / "data" / "main_data.hdf5", "w") as file:
        for episode in range(episodes):
            group = file.create_group(f"episode_{episode}")
            group["observations"] = observations + episode
            group["actions"] = actions
            group["rewards"] = observations[1:, 0]
            group["terminations"] = ends & (episode % 2 == 0)
            group["truncations"] = ends & (episode % 2 == 1)


def agent_for(numbers):
    """Returns an agent of the data."""
    import gymnasium
    import numpy as np

    import keras_rl2 as rl

    class Env(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (numbers,))
        action_space = gymnasium.spaces.Box(-1, 1, (ACTIONS,))

    return rl.TD3.for_env(Env(), seed=0)


def resident(key="VmRSS"):
    """Returns the MiB of this process that lie in memory."""
    for line in (
        Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    ):
        if line.startswith(key):
            return int(line.split()[1]) / 1024
    return float("nan")


def first_and_fast(folder):
    """Times the first minibatch, and many."""
    import keras_rl2 as rl

    agent = agent_for(NUMBERS)
    start, busy = time.perf_counter(), time.process_time()
    offline = rl.OfflineDataset(folder, batch_size=1000, memory_limit=2**31)
    offline.bind(agent)
    offline.sample(1000)
    first, busy = time.perf_counter() - start, time.process_time() - busy
    start, count = time.perf_counter(), 500
    for _ in range(count):
        offline.sample(1000)
    sampled = count / (time.perf_counter() - start)
    batches = offline.as_dataset(agent)
    iterator, per_round = iter(batches), offline.updates_per_round
    start, count = time.perf_counter(), 5 * per_round
    for index in range(count):
        if index % per_round == 0:
            offline.refresh()
        next(iterator)
    delivered = count / (time.perf_counter() - start)
    print(f"{offline!r}")
    print(f"seconds to the first batch: {first:.2f}, {busy:.2f} of a core")
    print(f"batches of 1000 per second, sample(): {sampled:.0f}")
    print(f"batches of 1000 per second, tf.data: {delivered:.0f}")


def train_large(folder, numbers, updates):
    """Trains on a dataset that streams, and prints what memory it takes."""
    import keras_rl2 as rl

    agent = agent_for(numbers)
    before = resident()
    start = time.perf_counter()
    offline = rl.OfflineDataset(folder, updates_per_epoch=updates)
    opened = time.perf_counter() - start
    start = time.perf_counter()
    agent.fit(offline, epochs=1, verbose=0)
    seconds = time.perf_counter() - start
    print(f"{offline!r} streams: {offline.streams}, opened in {opened:.1f} s")
    print(f"{updates} updates of 256 in {seconds:.1f} s, compiling included")
    start = time.perf_counter()
    for _ in range(300):
        offline.sample(1000)
    speed = 300 / (time.perf_counter() - start)
    print(f"batches of 1000 per second, streamed: {speed:.0f}")
    print(
        f"resident MiB: {before:.0f} before the data, {resident():.0f} after, "
        f"{resident('VmHWM'):.0f} at the most"
    )


def main():
    """Reads the arguments, makes the data, and measures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transitions", type=int, default=1_000_000)
    parser.add_argument("--gib", type=float, default=4.0)
    parser.add_argument("--updates", type=int, default=2000)
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        numbers = 64
        row = 8 * numbers + 4 * ACTIONS + 8 + 2
        large = max(int(arguments.gib * 2**30 / row / EPISODE), 1)
        for name, episodes, width in (
            ("million", max(arguments.transitions // EPISODE, 1), NUMBERS),
            ("large", large, numbers),
        ):
            write_folder(folder / name, episodes, width)
        # Each in a process of its own: memory is that of the process.
        for function, given in (
            (first_and_fast, (folder / "million",)),
            (train_large, (folder / "large", numbers, arguments.updates)),
        ):
            process = context.Process(target=function, args=given)
            process.start()
            process.join()


if __name__ == "__main__":
    main()
