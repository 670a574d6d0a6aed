"""Times an update of PPO by precision, with and without XLA.

    python benchmarks/precision.py

prints the table of docs/gpu.md, on whatever device TensorFlow picks: one
update of two networks on a minibatch that is there already, medians over runs
that take turns.
"""

import argparse
import os
import platform
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import keras_rl2 as rl

PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
SIZES = (((64, 64), 256), ((512, 512), 2048))


def make_update(hidden, batch_size, dtype, jit_compile):
    """Returns a function that makes one update."""
    agent = rl.PPO.for_env("CartPole-v1", hidden=hidden, dtype=dtype, seed=0)
    agent.compile(keras.optimizers.Adam(3e-4))
    computed_in = keras.DTypePolicy(dtype).compute_dtype
    assert agent.actor.layers[-1].compute_dtype == computed_in
    agent.optimizer.build(agent.trainable_variables)
    rng = np.random.default_rng(0)
    minibatch = {
        "observation": rng.normal(size=(batch_size, 4)).astype("float32"),
        "action": rng.integers(2, size=batch_size),
        "log_prob": np.full(batch_size, np.log(0.5), "float32"),
        "advantage": rng.normal(size=batch_size).astype("float32"),
        "returns": rng.normal(size=batch_size).astype("float32"),
        "value": np.zeros(batch_size, "float32"),
        "weight": np.ones(batch_size, "float32"),
    }
    minibatch = {key: tf.constant(array) for key, array in minibatch.items()}
    step = tf.function(
        agent.train_step, autograph=False, jit_compile=jit_compile
    )
    return lambda: step(minibatch)["loss"]


def milliseconds(update, updates):
    """Returns the time of one update."""
    start = time.perf_counter()
    for _ in range(updates):
        loss = update()
    loss.numpy()
    return 1e3 * (time.perf_counter() - start) / updates


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    print("| networks, minibatch | precision | ms per update | with XLA |")
    print("| --- | --- | ---: | ---: |")
    for hidden, batch_size in SIZES:
        updates = {
            (dtype, jit): make_update(hidden, batch_size, dtype, jit)
            for dtype in PRECISIONS
            for jit in (False, True)
        }
        for update in updates.values():
            milliseconds(update, 5)
        times = {key: [] for key in updates}
        for _ in range(arguments.runs):
            for key, update in updates.items():
                count = 100 if batch_size < 1000 else 10
                times[key].append(milliseconds(update, count))
        for dtype in PRECISIONS:
            plain, compiled = (
                statistics.median(times[dtype, jit]) for jit in (False, True)
            )
            size = f"{len(hidden)} x {hidden[0]}, {batch_size}"
            print(f"| {size} | `{dtype}` | {plain:.2f} | {compiled:.2f} |")
    devices = tf.config.list_logical_devices("GPU") or ["no GPU"]
    print(
        f"\nMedians of {arguments.runs} runs in turn: {os.cpu_count()} cores, "
        f"{devices}, Python {platform.python_version()}, TensorFlow "
        f"{tf.__version__}, Keras {keras.__version__}."
    )


if __name__ == "__main__":
    main()
