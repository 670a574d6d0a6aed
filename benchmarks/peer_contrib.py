"""Runs sb3-contrib on a case of `structured.py` and prints one JSON line.

Runs in a virtual environment of its own (torch, sb3-contrib), never in this
project's: the other side of a ratio.
"""

import json
import os
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))


def main():
    warnings.filterwarnings("ignore")
    task = json.loads(sys.argv[1])

    import torch

    # As many as there are cores to run on: more of them wait for each other.
    cores = len(os.sched_getaffinity(0))
    torch.set_num_threads(task.get("threads", cores))
    from stable_baselines3.common.callbacks import BaseCallback

    class RoundStarts(BaseCallback):
        """Notes when each round began: what is compiled in the first is not
        timed on either side.
        """

        times = []

        def _on_rollout_start(self):
            self.times.append(time.perf_counter())

        def _on_step(self):
            return True

    model, evaluate = make_model(task)
    model.learn(task["steps"], callback=(starts := RoundStarts()))
    seconds = time.perf_counter() - starts.times[1]
    first = task["horizon"] * task["envs"]
    result = {
        "steps_per_second": (model.num_timesteps - first) / seconds,
        "return": float(evaluate(model)),
    }
    print(json.dumps(result))


def make_model(task):
    """Returns the peer's agent, and what plays greedy episodes with it."""
    from sb3_contrib import MaskablePPO
    from sb3_contrib import RecurrentPPO
    from sb3_contrib.common.maskable import evaluation as masked
    from stable_baselines3.common import evaluation
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    from benchmarks.structured import make_env

    make = make_env(task["case"])
    env = make_vec_env(make, n_envs=task["envs"], seed=task["seed"])
    if task["normalizes"]:
        env = VecNormalize(env, gamma=task["gamma"])

    def number(value):
        return (lambda left: left * value) if task["decays"] else value

    settings = {
        "n_steps": task["horizon"],
        "n_epochs": task["passes"],
        "batch_size": task["batch_size"],
        "learning_rate": number(task["learning_rate"]),
        "clip_range": number(0.2),
        "gamma": task["gamma"],
        "gae_lambda": task["gae_lambda"],
        "seed": task["seed"],
        "device": "cpu",
    }

    def played(module):
        def evaluate(model):
            single = make_vec_env(make, seed=task["seed"] + 1000)
            if task["normalizes"]:
                single = VecNormalize(single, training=False, norm_reward=False)
                single.obs_rms = env.obs_rms
            mean, _ = module.evaluate_policy(
                model, single, n_eval_episodes=task["episodes"], warn=False
            )
            return mean

        return evaluate

    if task["case"] == "masks":
        return MaskablePPO("MlpPolicy", env, **settings), played(masked)
    shared = task.get("shared", True)
    policy = {
        "lstm_hidden_size": task["cell"],
        "shared_lstm": shared,
        "enable_critic_lstm": not shared,
    }
    model = RecurrentPPO("MlpLstmPolicy", env, policy_kwargs=policy, **settings)
    return model, played(evaluation)


if __name__ == "__main__":
    main()
