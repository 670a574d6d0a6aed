"""Times checkpoints: of large replay buffers, and of short rounds.

    python benchmarks/checkpoints.py

prints how long `fit` stands still for a checkpoint of a full replay buffer,
which share of a run's time that is, how long writing it takes beside training,
how much is written, and how long resuming takes; and what a `Checkpoint` costs
PPO and A2C, which have short rounds, between savings.
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
from keras_rl2.saving.checkpoint_folder import CheckpointFolder

EPISODE = 200
# capacity, steps from one checkpoint to the next, `prioritized`
REPLAYS = {
    "CartPole-v1, uniform": ("CartPole-v1", 1_000_000, 50_000, False),
    "CartPole-v1, prioritised": ("CartPole-v1", 1_000_000, 50_000, True),
    "84x84x1 pictures, uniform": ((84, 84, 1), 100_000, 10_000, False),
    "84x84x4 pictures, uniform": ((84, 84, 4), 100_000, 10_000, False),
}
ROUNDS = {
    "PPO": {"horizon": 128, "passes": 4, "batch_size": 256},
    "A2C": {"horizon": 5, "rounds_per_epoch": 50},
}
CHECKPOINTS = 5


class Pictures(gymnasium.Env):
    """Shows the same noise again and again."""

    action_space = gymnasium.spaces.Discrete(4)

    def __init__(self, shape):
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        generator = np.random.default_rng(0)
        self.shown = generator.integers(0, 256, shape, np.uint8)
        self.steps = 0

    def get_state(self):
        return self.steps

    def set_state(self, state):
        self.steps = state

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.shown, {}

    def step(self, action):
        self.steps += 1
        return self.shown, 0.0, self.steps == EPISODE, False, {}


class MadeUp(keras.callbacks.Callback):
    """Stores random steps, at the end of each epoch."""

    def __init__(self, replay, counts):
        super().__init__()
        self.replay = replay
        self.counts = list(counts)

    def on_epoch_end(self, epoch, logs=None):
        if self.counts:
            store(self.replay, self.counts.pop(0))


class Waiting(keras.callbacks.Callback):
    """Waits for what is written, so that nothing else is measured."""

    def __init__(self, checkpoint):
        super().__init__()
        self.checkpoint = checkpoint

    def on_epoch_end(self, epoch, logs=None):
        self.checkpoint.wait()


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


def make(task, capacity, prioritized):
    """Makes an agent and its replay, in the settings of DQN on CartPole."""
    is_id = isinstance(task, str)
    env = gymnasium.make(task) if is_id else Pictures(task)
    replay = rl.ReplayDataset(
        env,
        capacity=capacity,
        batch_size=64,
        steps_per_round=64,
        updates_per_round=16,
        warm_up=256,
        rounds_per_epoch=32 if is_id else 4,
        prioritized=prioritized,
        seed=0,
    )
    agent = rl.DQN.for_env(env, seed=0)
    return agent, replay


def print_replay(case, task, capacity, every, prioritized):
    """Prints what checkpoints of a full replay buffer cost."""
    agent, replay = make(task, capacity, prioritized)
    clock = Clock()
    agent.fit(replay, epochs=6, callbacks=[clock], verbose=0)
    directory = Path(tempfile.mkdtemp())
    write = CheckpointFolder.write
    try:
        known, sizes = set(), []
        checkpoint = rl.callbacks.Checkpoint(
            directory,
            every_steps=1,
        )
        taken = clocked(checkpoint, "on_epoch_begin")
        writing = clocked(CheckpointFolder, "write")
        timed = CheckpointFolder.write

        def write_and_measure(*arguments):
            timed(*arguments)
            sizes.append(new_bytes(directory, known))

        CheckpointFolder.write = write_and_measure
        counts = [capacity, *[every] * CHECKPOINTS]
        epochs = len(counts) + 1
        agent.fit(
            replay,
            epochs=epochs,
            callbacks=[checkpoint, Waiting(checkpoint), MadeUp(replay, counts)],
            verbose=0,
        )
        print(f"{case}: {capacity:,} transitions, a checkpoint every {every:,}")
        # Each at the beginning of an epoch, but for the first epoch, and the
        # last one, which has what was played.
        whole, *later = taken[1 : 2 + CHECKPOINTS]
        written, *written_later = writing[: 1 + CHECKPOINTS]
        seconds = statistics.median(later)
        between = every / clock.steps_per_second
        print(
            f"  the first, of all: fit stands still for {whole:.2f} s; written "
            f"in {written:.2f} s ({100 * whole / (whole + written):.1f} % of "
            f"both), {mib(sizes[0])} MiB"
        )
        print(
            f"  later: {seconds:.3f} s (to {max(later):.3f} s); written in "
            f"{statistics.median(written_later):.2f} s, "
            f"{mib(statistics.median(sizes[1 : 1 + CHECKPOINTS]))} MiB each"
        )
        print(
            f"  {clock.steps_per_second:,.0f} steps/s: stands still "
            f"{100 * seconds / between:.2f} % of the run's time"
        )
        seconds = resume(directory, epochs, task, capacity, prioritized)
        print(f"  resumed in {seconds:.2f} s")
    finally:
        CheckpointFolder.write = write
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


def new_bytes(directory, known):
    """Returns the bytes of files that are not known, which then are."""
    files = {each for each in directory.rglob("*") if each.is_file()} - known
    known.update(files)
    return sum(each.stat().st_size for each in files)


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
        taken = clocked(checkpoint, "_save")
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
