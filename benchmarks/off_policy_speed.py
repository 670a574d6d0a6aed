"""Times DQN, SAC and TD3 beside Stable-Baselines3 and SBX, in turn.

    python benchmarks/off_policy_speed.py \\
        --peer VENV/bin/python --sbx OTHER_VENV/bin/python

prints the steps per second of all sides (medians and ranges of alternate
runs), the ratios, and where our time goes: environment, acting, sampling the
minibatches, the bare update graph, and the rest.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks import off_policy
from benchmarks import peer_sb3
from benchmarks import peers

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

PARTS = ("env", "acting", "sample", "update", "rest")
PENDULUM = {
    "env": "Pendulum-v1",
    "envs": 1,
    "steps": 2_000,
    "hidden": [256, 256],
    "gamma": 0.99,
    "learning_rate": 3e-4,
    "capacity": 100_000,
    "batch_size": 256,
    "warm_up": 500,
    "steps_per_round": 1,
    "updates_per_round": 1,
}
CASES = {
    "DQN, CartPole-v1, batch 64, an update every 4 steps": {
        "algorithm": "DQN",
        "env": "CartPole-v1",
        "envs": 1,
        "steps": 20_000,
        "hidden": [256, 256],
        "gamma": 0.99,
        "learning_rate": 2.3e-3,
        "capacity": 100_000,
        "batch_size": 64,
        "warm_up": 1000,
        "steps_per_round": 4,
        "updates_per_round": 1,
        "epsilon": [0.16, 0.04],
        # Every 10 updates.
        "target_update_interval": 40,
        "max_gradient_norm": 10.0,
    },
    "SAC, Pendulum-v1, batch 256, an update every step": {
        "algorithm": "SAC",
        **PENDULUM,
    },
    "TD3, Pendulum-v1, batch 256, an update every step": {
        "algorithm": "TD3",
        "exploration": 0.1,
        **PENDULUM,
    },
    # The same, but acting with the weights of the very last update. Peers
    # always do: their figures are those of the row above.
    "SAC, Pendulum-v1, rounds of 1 step": {
        "algorithm": "SAC",
        **PENDULUM,
        "steps": 500,
        "exact": True,
    },
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python with stable-baselines3")
    parser.add_argument("--sbx", help="a Python with sbx-rl")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="cases that begin so")
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ours:
        print(json.dumps(ours(CASES[arguments.ours])))
        return
    for case in CASES:
        if case.startswith(arguments.only):
            compare(case, arguments)


def compare(case, arguments):
    """Runs all sides in turn and prints medians."""
    commands = {"keras_rl2": [sys.executable, __file__, "--ours", case]}
    if not CASES[case].get("exact"):
        if arguments.peer:
            commands["stable-baselines3"] = command(case, arguments.peer, "sb3")
        if arguments.sbx:
            commands["sbx"] = command(case, arguments.sbx, "sbx")
    results = peers.alternate(commands, arguments.runs)
    print(f"{case}: medians of {arguments.runs} runs")
    peers.print_speeds(results)
    peers.print_parts(results["keras_rl2"], PARTS)


def command(case, python, library):
    """Returns the command that runs a peer with the same settings."""
    task = CASES[case]
    return peers.peer_command(
        python,
        task["algorithm"],
        task["env"],
        off_policy.peer_settings(task, library),
        "warm",
        library=library,
        envs=task["envs"],
        steps=task["steps"],
    )


def ours(task):
    """Trains, and returns milliseconds of a round by part."""
    # The peers' exploration, too, falls over a share of all their steps.
    whole = {**task, "steps": peer_sb3.WARM_UP + task["steps"]}
    exact = task.get("exact", False)
    agent, replay, callbacks = off_policy.make(whole, 0, exact)

    def train(steps):
        """Returns rounds and seconds."""
        before, start = agent.env_steps, time.perf_counter()
        agent.fit(replay, total_steps=steps, callbacks=callbacks, verbose=0)
        seconds = time.perf_counter() - start
        return (agent.env_steps - before) / replay.steps_per_round, seconds

    train(peer_sb3.WARM_UP)
    rounds, seconds = train(task["steps"])
    total = seconds / rounds
    # The parts come from a run of their own: timing them costs a little.
    spent = {}
    peers.clock(replay.env, "step", "env", spent)
    peers.clock(replay.source.actor._runner, "__call__", "acting", spent)
    peers.clock(replay.buffer, "sample", "sample", spent)
    rounds, _ = train(task["steps"])
    parts = {key: value / rounds for key, value in spent.items()}
    replay.refresh()
    parts["update"] = peers.time_updates(agent, replay.hand_over(), int(rounds))
    parts["rest"] = total - sum(parts.values())
    result = {key: 1e3 * value for key, value in parts.items()}
    result["round"] = 1e3 * total
    result["steps_per_second"] = replay.steps_per_round / total
    result["peak_rss_mib"] = peer_sb3.peak_rss_mib()
    return result


if __name__ == "__main__":
    main()
