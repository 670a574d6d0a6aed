"""Times APPO beside PPO, with the same workers, up to a return of 475.

    python benchmarks/asynchronous.py --seeds 5

trains both in turn on a CartPole-v1 whose steps take 5 ms (`--fast` for one
that does not wait) and prints, for each seed, environment steps and seconds of
the clock until 20 greedy episodes had a mean return of 475, and the return at
the end; then medians and their ratio. The clock begins after the first epoch.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from benchmarks import peers
from support import sleeping_envs

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

GOAL = 475.0
STEPS = 50_000
WORKERS = 16
# A round is 128 steps, 40 ms of waiting, and 40 updates, which take as long.
DATASET = {"horizon": 8, "passes": 20, "batch_size": 64, "rounds_per_epoch": 16}
AGENT = {"hidden": (256, 256), "gamma": 0.98, "gae_lambda": 0.8}
LEARNING_RATE = 2e-4


def train(algorithm, seed, fast=False):
    """Trains one agent, and returns when it reached the goal.

    Args:
        algorithm: str. "PPO" or "APPO".
        seed: int.
        fast: bool. Whether the environment does not wait.

    Returns:
        dict: `steps` and `seconds` until the goal, None if it was not reached;
        `final`, the mean return of 100 greedy episodes at the end; and more.
    """
    import keras

    import keras_rl2 as rl

    env = "CartPole-v1" if fast else sleeping_envs.cartpole
    rollouts = rl.RolloutDataset(
        env,
        num_envs=WORKERS,
        workers=rl.LocalWorkers(2 if fast else WORKERS),
        seed=seed,
        **DATASET,
    )
    agent = getattr(rl, algorithm).for_env(rollouts.env, seed=seed, **AGENT)
    rounds = STEPS // rollouts.steps_per_round
    rate = keras.optimizers.schedules.PolynomialDecay(
        LEARNING_RATE, rounds * rollouts.updates_per_round, LEARNING_RATE / 10
    )
    agent.compile(keras.optimizers.Adam(rate, epsilon=1e-5))
    reached = {"steps": None, "seconds": None}
    began = None

    class Clock(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            nonlocal began
            # Graphs are traced in the first epoch, which is not counted.
            began = began or time.perf_counter()
            if reached["steps"] is None and logs["val_episode_return"] >= GOAL:
                reached["steps"] = logs["env_steps"]
                reached["seconds"] = time.perf_counter() - began

    history = agent.fit(
        rollouts,
        total_steps=STEPS,
        callbacks=[Clock()],
        validation_data=rl.EvaluationDataset(
            "CartPole-v1", episodes=20, num_envs=20, seed=1
        ),
        verbose=0,
    ).history
    seconds = time.perf_counter() - began
    final = agent.evaluate("CartPole-v1", episodes=100, num_envs=20, seed=2)
    rollouts.close()
    return {
        **reached,
        "final": final["episode_return"],
        "lag": history.get("lag", [0.0])[-1],
        "steps_per_second": agent.env_steps / seconds,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(train(arguments.only, arguments.seed, arguments.fast)))
        return
    results = {"PPO": [], "APPO": []}
    for seed in range(arguments.seeds):
        for algorithm, found in results.items():
            command = [
                sys.executable,
                __file__,
                *("--only", algorithm, "--seed", str(seed)),
                *(["--fast"] if arguments.fast else []),
            ]
            found.append(peers.run(command))
            print(algorithm, seed, json.dumps(found[-1]), flush=True)
    medians = {
        algorithm: statistics.median(
            each["seconds"] or float("inf") for each in found
        )
        for algorithm, found in results.items()
    }
    print(f"medians of the seconds to {GOAL:g}: {medians}")
    print(f"APPO's / PPO's: {medians['APPO'] / medians['PPO']:.2f}")


if __name__ == "__main__":
    main()
