"""Trains on several seeds beside Stable-Baselines3, same settings.

    python tests/benchmarks/learning.py ppo-cartpole --peer VENV/bin/python
    python tests/benchmarks/learning.py a2c-cartpole --peer VENV/bin/python

prints the greedy return of every seed, the interquartile means, and how ours
stands to the peer's. Both sides of a seed run one after the other.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

PEER = Path(__file__).resolve().parent / "peer_sb3.py"
# Published settings of RL Baselines3 Zoo (none is published for REINFORCE);
# "linear" schedules fall to 0.
TASKS = {
    "ppo-cartpole": {
        "algorithm": "PPO",
        "env": "CartPole-v1",
        "envs": 8,
        "steps": 100_000,
        "horizon": 32,
        "passes": 20,
        "batch_size": 256,
        "gamma": 0.98,
        "gae_lambda": 0.8,
        "learning_rate": 1e-3,
        "linear": True,
    },
    "ppo-pendulum": {
        "algorithm": "PPO",
        "env": "Pendulum-v1",
        "envs": 4,
        "steps": 100_000,
        "horizon": 1024,
        "passes": 10,
        "batch_size": 64,
        "gamma": 0.9,
        "gae_lambda": 0.95,
        "learning_rate": 1e-3,
    },
    "a2c-cartpole": {
        "algorithm": "A2C",
        "env": "CartPole-v1",
        "envs": 8,
        "steps": 500_000,
        "horizon": 5,
        "passes": 1,
        "batch_size": 40,
        "gamma": 0.99,
        "gae_lambda": 1.0,
        "learning_rate": 7e-4,
    },
    "reinforce-cartpole": {
        "algorithm": "REINFORCE",
        "env": "CartPole-v1",
        "envs": 8,
        "steps": 300_000,
        "horizon": 500,
        "passes": 1,
        "batch_size": None,
        "gamma": 0.99,
        "learning_rate": 1e-3,
    },
}


def train(task, seed, episodes=20):
    """Trains one agent and returns its greedy return and training speed."""
    import gymnasium as gym

    import keras_rl2 as rl

    env = gym.make_vec(
        task["env"], num_envs=task["envs"], vectorization_mode="sync"
    )
    rollouts = rl.RolloutDataset(
        env,
        horizon=task["horizon"],
        passes=task["passes"],
        batch_size=task["batch_size"],
        rounds_per_epoch=max(1000 // (task["horizon"] * task["envs"]), 1),
        seed=seed,
    )
    agent = make_agent(task, env, rollouts, seed)
    start = time.perf_counter()
    if agent.whole_episodes:
        while agent.env_steps < task["steps"]:
            agent.fit(rollouts, epochs=10, verbose=0)
    else:
        agent.fit(rollouts, total_steps=task["steps"], verbose=0)
    seconds = time.perf_counter() - start
    result = agent.evaluate(task["env"], episodes=episodes, seed=seed + 1000)
    return {
        "return": result["episode_return"],
        "steps_per_second": agent.env_steps / seconds,
    }


def make_agent(task, env, rollouts, seed):
    """Makes an agent with the settings of the task."""
    import keras

    import keras_rl2 as rl

    kind = getattr(rl, task["algorithm"])
    settings = {"gamma": task["gamma"], "seed": seed}
    if "gae_lambda" in task:
        settings["gae_lambda"] = task["gae_lambda"]
    learning_rate = task["learning_rate"]
    if task.get("linear"):
        rounds = -(-task["steps"] // rollouts.steps_per_round)
        updates = rounds * rollouts.updates_per_round
        decay = keras.optimizers.schedules.PolynomialDecay
        learning_rate = decay(learning_rate, updates, 0.0)
        settings["clip_ratio"] = decay(0.2, updates, 0.0)
    agent = kind.for_env(env, **settings)
    if task["algorithm"] == "A2C":
        agent.compile(
            keras.optimizers.RMSprop(learning_rate, rho=0.99, epsilon=1e-5)
        )
    else:
        agent.compile(keras.optimizers.Adam(learning_rate, epsilon=1e-5))
    return agent


def train_peer(python, task, seed, threads, episodes=20):
    """Trains Stable-Baselines3 in its own environment."""
    settings = {
        "n_steps": task["horizon"],
        "gamma": task["gamma"],
        "gae_lambda": task["gae_lambda"],
        "learning_rate": task["learning_rate"],
    }
    if task["algorithm"] == "PPO":
        settings["n_epochs"] = task["passes"]
        settings["batch_size"] = task["batch_size"]
    command = [python, str(PEER), task["algorithm"], task["env"]]
    command += ["--envs", str(task["envs"]), "--steps", str(task["steps"])]
    command += ["--seed", str(seed), "--evaluate", str(episodes)]
    command += ["--settings", json.dumps(settings), "--threads", str(threads)]
    command += ["--linear"] if task.get("linear") else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def interquartile_mean(values):
    """Returns the mean of the middle half, weighting the edges in part."""
    ordered = np.sort(np.asarray(values, float))
    edges = np.linspace(0.0, 1.0, len(ordered) + 1)
    inside = np.clip(np.minimum(edges[1:], 0.75), 0.25, None) - np.clip(
        edges[:-1], 0.25, 0.75
    )
    return float(np.average(ordered, weights=np.maximum(inside, 0.0)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("--peer", help="a Python with stable-baselines3")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of the peer")
    arguments = parser.parse_args()
    task = TASKS[arguments.task]
    results = {"keras_rl2": [], "stable-baselines3": []}
    for seed in range(arguments.seeds):
        results["keras_rl2"].append(train(task, seed))
        if arguments.peer and task["algorithm"] != "REINFORCE":
            results["stable-baselines3"].append(
                train_peer(arguments.peer, task, seed, arguments.threads)
            )
        last = {name: runs[-1] for name, runs in results.items() if runs}
        print(f"seed {seed}: {json.dumps(last)}", flush=True)
    for name, runs in results.items():
        if not runs:
            continue
        returns = [run["return"] for run in runs]
        speed = statistics.median(run["steps_per_second"] for run in runs)
        print(
            f"{name:18} interquartile mean {interquartile_mean(returns):9.2f} "
            f"returns {[round(r, 1) for r in returns]} "
            f"{speed:8.0f} steps/s"
        )


if __name__ == "__main__":
    main()
