"""PPO with memory and with masks beside sb3-contrib, on the same settings.

    python benchmarks/structured.py --peer VENV/bin/python

trains both sides in turn, a seed after the other, and prints their steps per
second and greedy returns. The peer's Python has sb3-contrib, torch and
gymnasium. Cases:

- memory: CartPole-v1 without velocities, an LSTM, beside RecurrentPPO;
- masks: 80 choices of which 60 are forbidden, beside MaskablePPO.
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

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

CASES = {
    "memory": {
        "steps": 100_000,
        "envs": 8,
        "horizon": 128,
        "passes": 10,
        "batch_size": 256,
        "sequence_length": 32,
        "learning_rate": 1e-3,
        "decays": True,
        "normalizes": True,
        "gamma": 0.98,
        "gae_lambda": 0.8,
        "cell": 64,
        "episodes": 20,
    },
    "masks": {
        "steps": 6144,
        "envs": 1,
        "horizon": 2048,
        "passes": 10,
        "batch_size": 64,
        "sequence_length": None,
        "learning_rate": 3e-4,
        "decays": False,
        "normalizes": False,
        "gamma": 0.4,
        "gae_lambda": 0.95,
        "cell": None,
        "episodes": 20,
    },
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python with sb3-contrib")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--ours", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ours:
        print(json.dumps(ours(**arguments.ours)))
        return
    for case in CASES if arguments.only is None else [arguments.only]:
        compare(case, arguments)


def compare(case, arguments):
    """Runs both sides in turn, and prints medians of all seeds."""
    results = {"keras_rl2": []}
    if arguments.peer:
        results["sb3-contrib"] = []
    for seed in range(arguments.seeds):
        given = json.dumps({"case": case, "seed": seed})
        results["keras_rl2"].append(
            peers.run([sys.executable, __file__, "--ours", given])
        )
        if arguments.peer:
            task = json.dumps({**CASES[case], "case": case, "seed": seed})
            results["sb3-contrib"].append(
                peers.run(
                    [arguments.peer, str(peers.HERE / "peer_contrib.py"), task]
                )
            )
    print(f"{case}: {arguments.seeds} seeds in turn")
    peers.print_speeds(results)
    for name, each in results.items():
        returns = [result["return"] for result in each]
        print(
            f"  {name:18} greedy return {statistics.median(returns):.1f} "
            f"({', '.join(f'{value:.1f}' for value in returns)})",
            flush=True,
        )


def make_env(case):
    """Returns what makes an environment of a case, and wrappers for ours."""
    import gymnasium as gym

    from benchmarks.forbidden_choices import ForbiddenChoices
    from support.memory_envs import PositionsOnly

    if case == "memory":
        return lambda: PositionsOnly(gym.make("CartPole-v1"))
    return ForbiddenChoices


def ours(case, seed):
    """Trains, and returns steps per second and the greedy return."""
    import gymnasium as gym
    import keras

    import keras_rl2 as rl

    task = CASES[case]
    make = make_env(case)
    if case == "masks":
        bare = make

        def make():
            return rl.envs.ActionMask(bare())

    rollouts = rl.RolloutDataset(
        gym.vector.SyncVectorEnv([make] * task["envs"]),
        horizon=task["horizon"],
        passes=task["passes"],
        batch_size=task["batch_size"],
        sequence_length=task["sequence_length"],
        scale_rewards=task["normalizes"],
        seed=seed,
    )
    rounds = task["steps"] // rollouts.steps_per_round

    def number(value):
        if not task["decays"]:
            return value
        return keras.optimizers.schedules.PolynomialDecay(
            value, rounds * rollouts.updates_per_round, 0.0
        )

    agent = rl.PPO.for_env(
        rollouts.env,
        memory=task["cell"] and keras.layers.LSTMCell(task["cell"]),
        gamma=task["gamma"],
        gae_lambda=task["gae_lambda"],
        clip_ratio=number(0.2),
        normalize_observations=task["normalizes"],
        seed=seed,
    )
    rate = number(task["learning_rate"])
    agent.compile(keras.optimizers.Adam(rate, epsilon=1e-5))
    round_steps = rollouts.steps_per_round
    # What is traced and compiled is not timed; it is of the run all the same.
    agent.fit(rollouts, epochs=1, verbose=0)
    start = time.perf_counter()
    agent.fit(rollouts, total_steps=task["steps"] - round_steps, verbose=0)
    seconds = time.perf_counter() - start
    score = agent.evaluate(make(), episodes=task["episodes"], seed=seed + 1000)
    return {
        "steps_per_second": (agent.env_steps - round_steps) / seconds,
        "return": score["episode_return"],
    }


if __name__ == "__main__":
    main()
