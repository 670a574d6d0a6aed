"""Times PPO and A2C on CartPole-v1 beside Stable-Baselines3, in turn.

    python benchmarks/speed.py --peer VENV/bin/python

prints the steps per second of both, their ratio (medians of alternate runs),
and where our time goes: environment, acting, prepare, the bare update graph,
and the rest.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks import peers
from benchmarks.peer_sb3 import peak_rss_mib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

PARTS = ("env", "acting", "prepare", "update", "rest")
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
    commands = {"keras_rl2": [sys.executable, __file__, "--ours", case]}
    if arguments.peer:
        commands["stable-baselines3"] = peer_command(arguments.peer, case)
    results = peers.alternate(commands, arguments.runs)
    print(f"{case}: CartPole-v1, medians of {arguments.runs} runs")
    peers.print_speeds(results)
    peers.print_parts(results["keras_rl2"], PARTS)


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
    return peers.peer_command(
        python,
        algorithm,
        "CartPole-v1",
        settings,
        "warm",
        envs=task["envs"],
        steps=STEPS,
    )


def ours(case):
    """Trains, and returns milliseconds of a round by part."""
    import gymnasium as gym
    import keras

    import keras_rl2 as rl

    task = CASES[case]
    env = gym.make_vec(
        "CartPole-v1", num_envs=task["envs"], vectorization_mode=task["mode"]
    )
    if case.startswith("A2C"):
        # As the peer's: the paper's.
        agent = rl.A2C.for_env(env, gae_lambda=1.0, seed=0)
        agent.compile(keras.optimizers.RMSprop(7e-4, rho=0.99, epsilon=1e-5))
    else:
        agent = rl.PPO.for_env(env, seed=0)
    steps = task["horizon"] * task["envs"]
    rounds = max(STEPS // steps, 20)
    # An epoch of a thousand steps: Keras' own work per epoch is not hidden.
    rollouts = rl.RolloutDataset(
        env,
        horizon=task["horizon"],
        passes=task["passes"],
        batch_size=task["batch_size"],
        rounds_per_epoch=max(1000 // steps, 1),
        scale_rewards=False,
        seed=0,
    )
    agent.fit(rollouts, epochs=3, verbose=0)
    start = time.perf_counter()
    agent.fit(rollouts, total_steps=rounds * steps, verbose=0)
    total = (time.perf_counter() - start) / rounds
    # The parts come from a run of their own: timing them costs a little.
    spent = {"prepare": 0.0}
    peers.clock(rollouts.env, "step", "env", spent)
    peers.clock(rollouts.source.actor._runner, "__call__", "acting", spent)
    peers.clock(agent, "prepare", "prepare", spent)
    agent.fit(rollouts, total_steps=rounds * steps, verbose=0)
    parts = {key: value / rounds for key, value in spent.items()}
    rollouts.refresh()
    parts["update"] = peers.time_updates(agent, rollouts.hand_over(), rounds)
    parts["rest"] = total - sum(parts.values())
    result = {key: 1e3 * value for key, value in parts.items()}
    result["round"] = 1e3 * total
    result["steps_per_second"] = steps / total
    result["peak_rss_mib"] = peak_rss_mib()
    return result


if __name__ == "__main__":
    main()
