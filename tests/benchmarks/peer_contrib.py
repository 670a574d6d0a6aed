"""Runs sb3-contrib on a case of `structured.py` and prints one JSON line.

Runs in a virtual environment of its own (torch, sb3-contrib), never in this
project's: the other side of a ratio.
"""

import json
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))


def main():
    warnings.filterwarnings("ignore")
    task = json.loads(sys.argv[1])

    import torch

    torch.set_num_threads(2)
    model, evaluate = make_model(task)
    first = task["horizon"] * task["envs"]
    model.learn(first)
    start = time.perf_counter()
    model.learn(task["steps"] - first, reset_num_timesteps=False)
    seconds = time.perf_counter() - start
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
    from stable_baselines3.common.monitor import Monitor

    from benchmarks.structured import make_env

    make = make_env(task["case"])
    env = make_vec_env(make, n_envs=task["envs"], seed=task["seed"])
    settings = {
        "n_steps": task["horizon"],
        "n_epochs": task["passes"],
        "batch_size": task["batch_size"],
        "learning_rate": task["learning_rate"],
        "gamma": task["gamma"],
        "seed": task["seed"],
        "device": "cpu",
    }

    def played(module):
        def evaluate(model):
            single = Monitor(make())
            single.reset(seed=task["seed"] + 1000)
            mean, _ = module.evaluate_policy(
                model, single, n_eval_episodes=task["episodes"], warn=False
            )
            return mean

        return evaluate

    if task["case"] == "masks":
        return MaskablePPO("MlpPolicy", env, **settings), played(masked)
    # One LSTM for policy and value, as ours.
    policy = {
        "lstm_hidden_size": task["cell"],
        "shared_lstm": True,
        "enable_critic_lstm": False,
    }
    model = RecurrentPPO("MlpLstmPolicy", env, policy_kwargs=policy, **settings)
    return model, played(evaluation)


if __name__ == "__main__":
    main()
