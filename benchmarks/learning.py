"""Trains on several seeds beside Stable-Baselines3, same settings.

    python benchmarks/learning.py ppo-cartpole --peer VENV/bin/python
    python benchmarks/learning.py sac-pendulum --peer VENV/bin/python

prints the greedy return of every seed, the interquartile means, and how ours
stands to the peer's. Both sides of a seed run one after the other.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks import off_policy
from benchmarks import peers
from benchmarks.tasks import TASKS
from keras_rl2.cli.plot import interquartile_mean

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def train(task, seed, episodes=20, exact=False):
    """Trains one agent and returns its greedy return and training speed."""
    if task["algorithm"] in off_policy.ALGORITHMS:
        agent, seconds = train_off_policy(task, seed, exact)
    else:
        agent, seconds = train_on_policy(task, seed)
    result = agent.evaluate(task["env"], episodes=episodes, seed=seed + 1000)
    return {
        "return": result["episode_return"],
        "steps_per_second": agent.env_steps / seconds,
    }


def train_off_policy(task, seed, exact):
    """Trains on a replay; returns the agent and the seconds it took."""
    agent, replay, callbacks = off_policy.make(task, seed, exact)
    start = time.perf_counter()
    agent.fit(replay, total_steps=task["steps"], callbacks=callbacks, verbose=0)
    return agent, time.perf_counter() - start


def train_on_policy(task, seed):
    """Trains on rollouts; returns the agent and the seconds it took."""
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
        scale_rewards=False,
        seed=seed,
    )
    agent = make_agent(task, env, rollouts, seed)
    start = time.perf_counter()
    if agent.whole_episodes:
        while agent.env_steps < task["steps"]:
            agent.fit(rollouts, epochs=10, verbose=0)
    else:
        agent.fit(rollouts, total_steps=task["steps"], verbose=0)
    return agent, time.perf_counter() - start


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
    command = peers.peer_command(
        python,
        task["algorithm"],
        task["env"],
        peer_settings(task),
        *(["linear"] if task.get("linear") else []),
        envs=task["envs"],
        steps=task["steps"],
        seed=seed,
        evaluate=episodes,
        threads=threads,
    )
    return peers.run(command)


def peer_settings(task):
    """Returns the peer's constructor arguments."""
    if task["algorithm"] in off_policy.ALGORITHMS:
        return off_policy.peer_settings(task)
    settings = {
        "n_steps": task["horizon"],
        "gamma": task["gamma"],
        "gae_lambda": task["gae_lambda"],
        "learning_rate": task["learning_rate"],
    }
    if task["algorithm"] == "PPO":
        settings["n_epochs"] = task["passes"]
        settings["batch_size"] = task["batch_size"]
    return settings


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("--peer", help="a Python with stable-baselines3")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="of the seeds")
    parser.add_argument("--threads", type=int, default=2, help="of the peer")
    parser.add_argument(
        "--exact", action="store_true", help="rounds as short as published"
    )
    arguments = parser.parse_args()
    task = TASKS[arguments.task]
    results = {"keras_rl2": [], "stable-baselines3": []}
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        results["keras_rl2"].append(train(task, seed, exact=arguments.exact))
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
            f"{name:18} interquartile mean "
            f"{float(interquartile_mean(returns)):9.2f} "
            f"returns {[round(r, 1) for r in returns]} "
            f"{speed:8.0f} steps/s"
        )


if __name__ == "__main__":
    main()
