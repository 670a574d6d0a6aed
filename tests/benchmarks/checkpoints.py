"""Times checkpoints: of large replay buffers, and of short rounds.

    python tests/benchmarks/checkpoints.py

prints what a checkpoint of a full replay buffer takes, which share of a run's
time that is, how much of it is written, and how long resuming takes; and what
a `Checkpoint` costs PPO and A2C, which have short rounds, between savings.
Buffers are filled with made-up steps, at once, but for those of an epoch.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import gymnasium
import keras
import numpy as np

import keras_rl2 as rl
from keras_rl2.collecting.trajectory import Trajectory

EPISODE = 200
PICTURE = gymnasium.spaces.Box(0, 255, (84, 84, 1), np.uint8)
# capacity, steps from one checkpoint to the next, `prioritized`
REPLAYS = {
    "CartPole-v1, uniform": ("CartPole-v1", 1_000_000, 50_000, False),
    "CartPole-v1, prioritised": ("CartPole-v1", 1_000_000, 50_000, True),
    "84x84x1 pictures, uniform": ("pictures", 100_000, 10_000, False),
}
ROUNDS = {
    "PPO": {"horizon": 128, "passes": 4, "batch_size": 256},
    "A2C": {"horizon": 5, "rounds_per_epoch": 50},
}
CHECKPOINTS = 5


class Pictures(gymnasium.Env):
    """Shows the same noise again and again."""

    observation_space = PICTURE
    action_space = gymnasium.spaces.Discrete(4)

    def __init__(self):
        generator = np.random.default_rng(0)
        self.shown = generator.integers(0, 256, (84, 84, 1), np.uint8)
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.shown, {}

    def step(self, action):
        self.steps += 1
        return self.shown, 0.0, self.steps == EPISODE, False, {}


class MadeUp(keras.callbacks.Callback):
    """Stores steps that nobody took, at the end of each epoch."""

    def __init__(self, replay, counts):
        super().__init__()
        self.replay = replay
        self.counts = list(counts)

    def on_epoch_end(self, epoch, logs=None):
        if self.counts:
            store(self.replay, self.counts.pop(0))


class Clock(keras.callbacks.Callback):
    """Times epochs, the first of which compiles."""

    def on_train_begin(self, logs=None):
        self.times = []

    def on_epoch_end(self, epoch, logs=None):
        now = time.perf_counter(), time.process_time(), self.model.env_steps
        self.times.append(now)

    def since(self, index):
        """Returns how much there was from the second epoch's end on."""
        return self.times[-1][index] - self.times[1][index]

    @property
    def seconds(self):
        return self.since(0)

    @property
    def cpu_seconds(self):
        return self.since(1)

    @property
    def steps_per_second(self):
        return self.since(2) / self.since(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases that begin so")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100_000)
    arguments = parser.parse_args()
    for case, settings in REPLAYS.items():
        if case.startswith(arguments.only):
            print_replay(case, *settings)
    for algorithm in ROUNDS:
        if algorithm.startswith(arguments.only):
            compare(algorithm, arguments.pairs, arguments.steps)


def store(replay, count):
    """Stores made-up steps in a buffer, in episodes."""
    generator = np.random.default_rng(count)
    space = replay.env.observation_space
    chunk = min(count, 5_000)
    shape = (chunk + 1, 1, *space.shape)
    if space.dtype == np.uint8:
        observation = generator.integers(0, 256, shape, np.uint8)
    else:
        observation = generator.normal(size=shape).astype(np.float32)
    ends = np.zeros((chunk, 1), np.bool_)
    ends[EPISODE - 1 :: EPISODE] = True
    index = np.flatnonzero(ends)
    made_up = Trajectory(
        observation,
        generator.integers(2, size=(chunk, 1)).astype(np.int32),
        np.ones((chunk, 1), np.float32),
        ends,
        np.zeros_like(ends),
        np.ones_like(ends),
        observation[index, 0],
        index.astype(np.int32),
    )
    for _ in range(count // chunk):
        replay.buffer.extend(made_up)


def make(env_id, capacity, prioritized):
    """Makes an agent and its replay, in the settings of DQN on CartPole."""
    env = Pictures() if env_id == "pictures" else gymnasium.make(env_id)
    replay = rl.ReplayDataset(
        env,
        capacity=capacity,
        batch_size=64,
        steps_per_round=64,
        updates_per_round=16,
        warm_up=256,
        rounds_per_epoch=4 if env_id == "pictures" else 32,
        prioritized=prioritized,
        seed=0,
    )
    agent = rl.DQN.for_env(env, seed=0)
    return agent, replay


def print_replay(case, env_id, capacity, every, prioritized):
    """Prints what checkpoints of a full replay buffer cost."""
    agent, replay = make(env_id, capacity, prioritized)
    clock = Clock()
    agent.fit(replay, epochs=6, callbacks=[clock], verbose=0)
    directory = Path(tempfile.mkdtemp())
    try:
        checkpoint = rl.callbacks.Checkpoint(directory, every_steps=1)
        taken = clocked(checkpoint, "save")
        sizes = []
        written(checkpoint, directory, sizes)
        counts = [capacity, *[every] * CHECKPOINTS]
        epochs = len(counts) + 1
        agent.fit(
            replay,
            epochs=epochs,
            callbacks=[checkpoint, MadeUp(replay, counts)],
            verbose=0,
        )
        print(f"{case}: {capacity:,} transitions, a checkpoint every {every:,}")
        # Each at the beginning of an epoch; the last has what was played.
        whole, later = taken[0], taken[1 : 1 + CHECKPOINTS]
        seconds = statistics.median(later)
        between = every / clock.steps_per_second
        print(f"  the first, of all: {whole:.2f} s, {mib(sizes[0])} MiB")
        print(
            f"  later: {seconds:.2f} s (to {max(later):.2f} s), "
            f"{mib(statistics.median(sizes[1 : 1 + CHECKPOINTS]))} MiB each"
        )
        print(
            f"  {clock.steps_per_second:,.0f} steps/s: "
            f"{100 * seconds / between:.2f} % of the run's time"
        )
        seconds = resume(directory, epochs, env_id, capacity, prioritized)
        print(f"  resumed in {seconds:.2f} s")
    finally:
        shutil.rmtree(directory)


def clocked(owner, name):
    """Has a method's calls timed, and returns where the seconds are put."""
    taken, method = [], getattr(owner, name)

    def timed(*args, **kwargs):
        start = time.perf_counter()
        try:
            return method(*args, **kwargs)
        finally:
            taken.append(time.perf_counter() - start)

    setattr(owner, name, timed)
    return taken


def written(checkpoint, directory, sizes):
    """Has the bytes of each saving noted: files that were not there before."""
    method, known = checkpoint.save, set()

    def noted(*args, **kwargs):
        method(*args, **kwargs)
        files = {each for each in directory.rglob("*") if each.is_file()}
        sizes.append(sum(each.stat().st_size for each in files - known))
        known.update(files)

    checkpoint.save = noted


def mib(size):
    """Returns bytes in MiB, to read."""
    return f"{size / 2**20:.1f}"


def resume(directory, epochs, *settings):
    """Returns the seconds from `fit` to where training would go on."""
    agent, replay = make(*settings)
    checkpoint = rl.callbacks.Checkpoint(directory, every_steps=1)
    taken = clocked(checkpoint, "begin")
    history = agent.fit(
        replay, epochs=epochs, callbacks=[checkpoint], verbose=0
    )
    assert history.epoch == [*range(epochs)]
    return taken[0]


def compare(algorithm, pairs, steps):
    """Prints what checking costs between savings, and a saving."""
    cpu = {True: [], False: []}
    saving, shares = [], []
    with tempfile.TemporaryDirectory() as directory:
        for pair in range(pairs):
            # In turn: what comes first may find a machine that is cold.
            for given in (pair % 2 == 0, pair % 2 == 1):
                folder = Path(directory) / str(pair) if given else None
                clock, taken, checks = run(algorithm, steps, folder)
                cpu[given].append(clock.cpu_seconds)
                saving += taken
                shares += [checks / clock.seconds] * given
    ratios = [a / b - 1 for a, b in zip(cpu[True], cpu[False], strict=True)]
    seconds = statistics.median(saving)
    print(
        f"{algorithm}, CartPole-v1, 8 environments, with a "
        f"Checkpoint(every_seconds=60): its checks take "
        f"{100 * statistics.median(shares):.3f} % of the time (to "
        f"{100 * max(shares):.3f} %); CPU seconds beside without "
        f"{100 * statistics.median(ratios):+.1f} % (median of {pairs} pairs, "
        f"{100 * min(ratios):+.1f} to {100 * max(ratios):+.1f}). A saving: "
        f"{1e3 * seconds:.0f} ms, {100 * seconds / 60:.2f} % of the time"
    )


def run(algorithm, steps, directory):
    """Trains once; returns the clock, the seconds of each saving and checks."""
    rollouts = rl.RolloutDataset(
        "CartPole-v1", num_envs=8, seed=0, **ROUNDS[algorithm]
    )
    agent = getattr(rl, algorithm).for_env("CartPole-v1", seed=0)
    clock, callbacks, taken, checks = Clock(), [], [], []
    if directory:
        checkpoint = rl.callbacks.Checkpoint(directory, every_seconds=60)
        taken = clocked(checkpoint, "save")
        checks = [
            clocked(checkpoint, name)
            for name in ("on_epoch_begin", "on_train_batch_begin")
        ]
        callbacks = [checkpoint]
    agent.fit(
        rollouts,
        total_steps=steps,
        callbacks=[*callbacks, clock],
        verbose=0,
    )
    rollouts.close()
    # But for the savings, which are counted by themselves.
    checking = sum(map(sum, checks)) - sum(taken[:-1])
    return clock, taken, checking


if __name__ == "__main__":
    main()
