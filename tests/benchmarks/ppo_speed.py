"""Times PPO on CartPole-v1 beside Stable-Baselines3, in alternate runs.

    python tests/benchmarks/ppo_speed.py --peer VENV/bin/python

prints, for 8 synchronous and 64 native environments, the steps per second of
both, their ratio (medians of the runs), and where our time goes: environment,
acting, prepare, the bare update graph, and the rest.
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
HORIZON, PASSES = 128, 4
# Environments, vectorization mode, batch size.
CASES = {
    "8 sync environments, batch 256": (8, "sync", 256),
    "64 native environments, batch 256": (64, None, 256),
    "64 native environments, batch 2048": (64, None, 2048),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python with stable-baselines3")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ours:
        print(json.dumps(ours(arguments.ours, arguments.rounds)))
        return
    for case, (envs, _, batch_size) in CASES.items():
        compare(case, envs, batch_size, arguments)


def compare(case, envs, batch_size, arguments):
    """Runs both sides in turn and prints medians."""
    own, peer = [], []
    # The same number of steps is too long for the peer with many environments.
    steps = HORIZON * envs * max(arguments.rounds // (envs // 8), 8)
    for _ in range(arguments.runs):
        own.append(
            run(
                [
                    sys.executable,
                    __file__,
                    "--ours",
                    case,
                    "--rounds",
                    str(arguments.rounds),
                ]
            )
        )
        if arguments.peer:
            peer.append(run_peer(arguments.peer, envs, batch_size, steps))
    median = {
        key: statistics.median(result[key] for result in own) for key in own[0]
    }
    print(f"PPO CartPole-v1, {case}, medians of {len(own)} runs")
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
        print(f"  {part:8} {median[part]:8.2f} ms {share:5.1f} %")
    print(f"  round    {median['round']:8.2f} ms", flush=True)


def run(command):
    """Runs a command and reads its last line as JSON."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_peer(python, envs, batch_size, steps):
    """Runs Stable-Baselines3 with the same settings."""
    settings = {
        "n_steps": HORIZON,
        "batch_size": batch_size,
        "n_epochs": PASSES,
        "learning_rate": 2.5e-4,
    }
    return run(
        [
            python,
            str(HERE / "peer_sb3.py"),
            "CartPole-v1",
            "--envs",
            str(envs),
            "--steps",
            str(steps),
            "--warm",
            "--settings",
            json.dumps(settings),
        ]
    )


def ours(case, rounds):
    """Trains, and returns milliseconds of a round by part."""
    import gymnasium as gym
    import keras
    import tensorflow as tf

    import keras_rl2 as rl

    envs, mode, batch_size = CASES[case]
    env = gym.make_vec("CartPole-v1", num_envs=envs, vectorization_mode=mode)
    agent = rl.PPO.for_env(env, seed=0)
    agent.compile(keras.optimizers.Adam(2.5e-4, epsilon=1e-5))
    rollouts = rl.RolloutDataset(
        env,
        horizon=HORIZON,
        passes=PASSES,
        batch_size=batch_size,
        seed=0,
    )
    agent.fit(rollouts, epochs=3, verbose=0)
    start = time.perf_counter()
    agent.fit(rollouts, epochs=rounds, verbose=0)
    total = (time.perf_counter() - start) / rounds
    # The parts come from a run of their own: timing them costs a little.
    spent = {}
    collector = rollouts._collector
    clock(collector.env, "step", "env", spent)
    clock(rollouts._actor._runner, "__call__", "acting", spent)
    clock(agent, "prepare", "prepare", spent)
    agent.fit(rollouts, epochs=rounds, verbose=0)
    parts = {key: value / rounds for key, value in spent.items()}
    rollouts.refresh()
    stack = next(iter(rollouts.as_rounds(agent)))
    stacks = tf.data.Dataset.from_tensors(stack).repeat()
    iterator = iter(stacks)
    function = agent.make_train_function()
    start = time.perf_counter()
    for _ in range(rounds):
        logs = function(iterator)
    float(logs["loss"])
    parts["update"] = (time.perf_counter() - start) / rounds
    parts["rest"] = total - sum(parts.values())
    result = {key: 1e3 * value for key, value in parts.items()}
    result["round"] = 1e3 * total
    result["steps_per_second"] = HORIZON * envs / total
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
