"""Times PPO and A2C on CartPole-v1 beside Stable-Baselines3, in turn.

    python tests/benchmarks/speed.py --peer VENV/bin/python

prints the steps per second of both, their ratio (medians of alternate runs),
and where our time goes: environment, acting, prepare, the bare update graph,
and the rest.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

HERE = Path(__file__).resolve().parent
PPO = {"horizon": 128, "passes": 4}
CASES = {
    "PPO, 8 sync environments, batch 256": {
        "envs": 8,
        "mode": "sync",
        "batch_size": 256,
        **PPO,
    },
    "PPO, 64 native environments, batch 256": {
        "envs": 64,
        "mode": None,
        "batch_size": 256,
        **PPO,
    },
    "PPO, 64 native environments, batch 2048": {
        "envs": 64,
        "mode": None,
        "batch_size": 2048,
        **PPO,
    },
    "A2C, 8 sync environments, horizon 5": {
        "envs": 8,
        "mode": "sync",
        "batch_size": 40,
        "horizon": 5,
        "passes": 1,
    },
}
# Environment steps of a run, of ours and of the peer.
STEPS = 60_000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python with stable-baselines3")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="cases that begin so")
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ours:
        print(json.dumps(ours(arguments.ours)))
        return
    for case in CASES:
        if case.startswith(arguments.only):
            compare(case, arguments)


def compare(case, arguments):
    """Runs both sides in turn and prints medians."""
    own, peer = [], []
    for _ in range(arguments.runs):
        own.append(run([sys.executable, __file__, "--ours", case]))
        if arguments.peer:
            peer.append(run(peer_command(arguments.peer, case)))
    median = {
        key: statistics.median(result[key] for result in own) for key in own[0]
    }
    print(f"{case}: CartPole-v1, medians of {len(own)} runs")
    print(f"  keras_rl2          {median['steps_per_second']:10.0f} steps/s")
    if peer:
        other = statistics.median(r["steps_per_second"] for r in peer)
        ratios = [
            a["steps_per_second"] / b["steps_per_second"]
            for a, b in zip(own, peer, strict=True)
        ]
        print(f"  stable-baselines3  {other:10.0f} steps/s")
        print(
            f"  ratio {statistics.median(ratios):.2f} "
            f"(each run: {', '.join(f'{r:.2f}' for r in ratios)})"
        )
    for part in ("env", "acting", "prepare", "update", "rest"):
        share = 100.0 * median[part] / median["round"]
        print(f"  {part:8} {median[part]:8.3f} ms {share:5.1f} %")
    print(f"  round    {median['round']:8.3f} ms", flush=True)


def run(command):
    """Runs a command and reads its last line as JSON."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def peer_command(python, case):
    """Returns the command that runs the peer with the same settings."""
    task = CASES[case]
    algorithm = case.split(",")[0]
    settings = {"n_steps": task["horizon"]}
    if algorithm == "PPO":
        settings |= {
            "batch_size": task["batch_size"],
            "n_epochs": task["passes"],
            "learning_rate": 2.5e-4,
        }
    command = [python, str(HERE / "peer_sb3.py"), algorithm, "CartPole-v1"]
    command += ["--envs", str(task["envs"]), "--steps", str(STEPS), "--warm"]
    return [*command, "--settings", json.dumps(settings)]


def ours(case):
    """Trains, and returns milliseconds of a round by part."""
    import gymnasium as gym
    import tensorflow as tf

    import keras_rl2 as rl

    task = CASES[case]
    env = gym.make_vec(
        "CartPole-v1", num_envs=task["envs"], vectorization_mode=task["mode"]
    )
    agent = getattr(rl, case.split(",")[0]).for_env(env, seed=0)
    steps = task["horizon"] * task["envs"]
    rounds = max(STEPS // steps, 20)
    # An epoch of a thousand steps: Keras' own work per epoch is not hidden.
    rollouts = rl.RolloutDataset(
        env,
        horizon=task["horizon"],
        passes=task["passes"],
        batch_size=task["batch_size"],
        rounds_per_epoch=max(1000 // steps, 1),
        seed=0,
    )
    agent.fit(rollouts, epochs=3, verbose=0)
    start = time.perf_counter()
    agent.fit(rollouts, total_steps=rounds * steps, verbose=0)
    total = (time.perf_counter() - start) / rounds
    # The parts come from a run of their own: timing them costs a little.
    spent = {"prepare": 0.0}
    clock(rollouts._collector.env, "step", "env", spent)
    clock(rollouts._actor._runner, "__call__", "acting", spent)
    clock(agent, "prepare", "prepare", spent)
    agent.fit(rollouts, total_steps=rounds * steps, verbose=0)
    parts = {key: value / rounds for key, value in spent.items()}
    rounds_as_trained = rollouts.as_rounds(
        agent, agent.round_size.from_trajectory
    )
    rollouts.refresh()
    element = next(iter(rounds_as_trained))
    iterator = iter(tf.data.Dataset.from_tensors(element).repeat())
    function = agent.make_train_function()
    start = time.perf_counter()
    for _ in range(rounds):
        logs = function(iterator)
    float(logs["loss"])
    parts["update"] = (time.perf_counter() - start) / rounds
    parts["rest"] = total - sum(parts.values())
    result = {key: 1e3 * value for key, value in parts.items()}
    result["round"] = 1e3 * total
    result["steps_per_second"] = steps / total
    return result


def clock(target, name, key, spent):
    """Adds the time within a method to `spent`."""
    if name == "__call__":
        owner = type(target)
        method = owner.__call__

        def timed(self, *arguments):
            start = time.perf_counter()
            result = method(self, *arguments)
            spent[key] = spent.get(key, 0.0) + time.perf_counter() - start
            return result

        owner.__call__ = timed
        return
    method = getattr(target, name)

    def timed_method(*arguments, **options):
        start = time.perf_counter()
        result = method(*arguments, **options)
        spent[key] = spent.get(key, 0.0) + time.perf_counter() - start
        return result

    object.__setattr__(target, name, timed_method)


if __name__ == "__main__":
    main()
