"""Measures what stays in memory of each training of many in one process.

    python benchmarks/memory_per_training.py

prints what stays of each cycle of make, fit, close and collect, for agents, for
a plain compiled Keras model with layers of the same sizes, and for a bare
`tf.function` of one such update that is called once and forgotten: each row is
a process of its own, and the slope is that of the resident memory over the
cycles after the first ones.
"""

import argparse
import ctypes
import gc
import itertools
import os
import platform
import resource
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import gymnasium as gym
import keras
import numpy as np
import tensorflow as tf

import keras_rl2 as rl

NUM_ENVS = 8
HORIZON = 32
HIDDEN = (64, 64)
JIT_COMPILE = {"xla": True, "no_xla": False}


def train_ppo(jit_compile):
    """Trains an agent for a few rounds."""
    env = gym.make_vec("CartPole-v1", num_envs=NUM_ENVS)
    agent = rl.PPO.for_env(env, hidden=HIDDEN, seed=0)
    agent.compile(keras.optimizers.Adam(3e-4), jit_compile=jit_compile)
    data = rl.RolloutDataset(env, HORIZON, 4, batch_size=64, seed=0)
    agent.fit(data, total_steps=4 * NUM_ENVS * HORIZON, verbose=0)
    env.close()


def train_dqn(jit_compile):
    """Trains an agent that learns from replay."""
    env = gym.make_vec("CartPole-v1", num_envs=NUM_ENVS)
    agent = rl.DQN.for_env(env, hidden=HIDDEN, seed=0)
    agent.compile(keras.optimizers.Adam(3e-4), jit_compile=jit_compile)
    data = rl.ReplayDataset(
        env, 1000, steps_per_round=32, updates_per_round=4, warm_up=64, seed=0
    )
    agent.fit(data, total_steps=512, verbose=0)
    env.close()


def train_keras(jit_compile):
    """Trains two outputs of a plain model, as many updates as PPO makes."""
    inputs = keras.Input((4,))
    outputs = []
    for size in (2, 1):
        x = inputs
        for units in HIDDEN:
            x = keras.layers.Dense(units, activation="tanh")(x)
        outputs.append(keras.layers.Dense(size)(x))
    model = keras.Model(inputs, outputs)
    model.compile(
        keras.optimizers.Adam(3e-4),
        loss=["mse", "mse"],
        jit_compile=jit_compile,
    )
    rng = np.random.default_rng(0)
    count = NUM_ENVS * HORIZON
    x = rng.normal(size=(count, 4)).astype("float32")
    y = [rng.normal(size=(count, n)).astype("float32") for n in (2, 1)]
    model.fit(x, y, batch_size=64, epochs=16, verbose=0)
    # Acting, as an agent does between its updates.
    model.predict(x, verbose=0)


def train_function(jit_compile):
    """Runs one update by TensorFlow alone, which nothing refers to then."""
    sizes = [4, *HIDDEN, 2]
    kernels = [
        tf.Variable(tf.zeros(shape)) for shape in itertools.pairwise(sizes)
    ]

    @tf.function(jit_compile=jit_compile)
    def update(x):
        with tf.GradientTape() as tape:
            for kernel in kernels:
                x = tf.tanh(x @ kernel)
            loss = tf.reduce_mean(x**2)
        for kernel, gradient in zip(
            kernels, tape.gradient(loss, kernels), strict=True
        ):
            kernel.assign_sub(gradient)

    update(tf.zeros((64, 4)))


TRAININGS = {
    "ppo": train_ppo,
    "dqn": train_dqn,
    "keras": train_keras,
    "function": train_function,
}


def resident_mib():
    """Returns the resident memory of this process."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        pages = int(file.read().split()[1])
    return pages * resource.getpagesize() / 2**20


def measure(name, mode, cycles, warm_up, trim, clear):
    """Returns the slope in MiB per cycle, and the memory after the last."""
    memory = []
    for _ in range(cycles):
        TRAININGS[name](JIT_COMPILE[mode])
        if clear:
            keras.backend.clear_session()
        gc.collect()
        if trim:
            # Gives back what is free but held: what stays then is in use.
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        memory.append(resident_mib())
    slope = np.polyfit(range(cycles - warm_up), memory[warm_up:], 1)[0]
    return slope, memory[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=15)
    parser.add_argument("--warm-up", type=int, default=4)
    parser.add_argument("--trim", action="store_true")
    parser.add_argument("--clear", action="store_true")
    parser.add_argument("--only", nargs="*", default=[*TRAININGS])
    parser.add_argument("--mode", choices=JIT_COMPILE)
    arguments = parser.parse_args()
    if arguments.mode:
        for name in arguments.only:
            slope, last = measure(
                name,
                arguments.mode,
                arguments.cycles,
                arguments.warm_up,
                arguments.trim,
                arguments.clear,
            )
            print(f"| {name} | {arguments.mode} | {slope:.2f} | {last:.0f} |")
        return
    print("| training | mode | MiB per cycle | MiB at the end |")
    print("| --- | --- | ---: | ---: |", flush=True)
    for name in arguments.only:
        for mode in JIT_COMPILE:
            given = [*sys.argv[1:], "--only", name, "--mode", mode]
            subprocess.run([sys.executable, __file__, *given], check=True)
    print(
        f"\n{arguments.cycles} cycles, of which the first {arguments.warm_up} "
        f"do not count: {platform.system()}, Python "
        f"{platform.python_version()}, TensorFlow {tf.__version__}, Keras "
        f"{keras.__version__}."
    )


if __name__ == "__main__":
    main()
