"""Times a round of each of Keras' own layers, with and without XLA.

    python benchmarks/layers.py
    python benchmarks/layers.py --agents DQN --layers Dropout LSTM

prints a table: milliseconds of a round's updates, of networks of width 64 with
such a layer, with `jit_compile=True`, with False, and with what `"auto"` takes
of the two. Rounds of either take turns, the fastest of each counts, and those
that trace and compile count for nothing.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import gymnasium as gym
import keras

import keras_rl2 as rl
from keras_rl2.training import rounds
from support.any_space_env import AnySpaceEnv
from support.stock_layers import LAYERS
from support.stock_layers import OBSERVATIONS
from support.stock_layers import network

WIDTH, ENVS, ACTIONS = 64, 8, 3


class Clock(keras.callbacks.Callback):
    """Measures the call of TensorFlow that makes a round's updates."""

    def __init__(self):
        super().__init__()
        self.seconds = []

    def on_train_batch_begin(self, batch, logs=None):
        """Starts with the updates: rounds are collected before."""
        self._begun = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        """Stops with them."""
        self.seconds.append(time.perf_counter() - self._begun)


def make(algorithm, name, jit_compile):
    """Makes an agent of networks with a layer, and its dataset."""
    space = OBSERVATIONS[LAYERS[name][0]]

    def make_env():
        return AnySpaceEnv(space, gym.spaces.Discrete(ACTIONS))

    env = gym.vector.SyncVectorEnv([make_env] * ENVS)
    keras.utils.set_random_seed(0)
    if algorithm == "PPO":
        networks = network(name, ACTIONS, WIDTH), network(name, 1, WIDTH)
        agent = rl.PPO(*networks, seed=0)
        dataset = rl.RolloutDataset(
            env, horizon=64, passes=4, batch_size=128, seed=0
        )
    else:
        agent = rl.DQN(network(name, ACTIONS, WIDTH), seed=0)
        dataset = rl.ReplayDataset(
            env,
            capacity=2048,
            batch_size=64,
            warm_up=128,
            steps_per_round=ENVS,
            updates_per_round=16,
            rounds_per_epoch=1,
            seed=0,
        )
    agent.compile(jit_compile=jit_compile)
    return agent, dataset


def choice(algorithm, name):
    """Returns what `"auto"` takes."""
    agent, dataset = make(algorithm, name, "auto")
    dataset.bind(agent)
    return rounds.pays_to_compile(agent)


def measure(algorithm, name, rounds):
    """Returns milliseconds of a round, with XLA and without."""
    clocks = {}
    made = {}
    for compiled in (True, False):
        made[compiled] = make(algorithm, name, compiled)
        clocks[compiled] = Clock()
        agent, dataset = made[compiled]
        agent.fit(dataset, epochs=2, verbose=0)
    for _ in range(rounds // 5):
        for compiled, (agent, dataset) in made.items():
            agent.fit(
                dataset, epochs=5, callbacks=[clocks[compiled]], verbose=0
            )
    return [1e3 * min(clocks[each].seconds) for each in (True, False)]


def main():
    """Prints the table, row by row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--agents", nargs="+", default=["PPO", "DQN"])
    parser.add_argument("--layers", nargs="+", default=list(LAYERS))
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    print("| agent | layer | True | False | auto | auto / best |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for algorithm in arguments.agents:
        for name in arguments.layers:
            with_xla, without = measure(algorithm, name, arguments.rounds)
            taken = with_xla if choice(algorithm, name) else without
            ratio = taken / min(with_xla, without)
            print(
                f"| {algorithm} | {name} | {with_xla:.1f} | {without:.1f} | "
                f"{taken:.1f} | {ratio:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
