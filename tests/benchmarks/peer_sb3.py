"""Runs Stable-Baselines3 on one task and prints one JSON line.

Runs in a virtual environment of its own (torch, stable-baselines3), never in
this project's: the other side of a ratio.
"""

import argparse
import json
import time
import warnings

warnings.filterwarnings("ignore")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithm", choices=["PPO", "A2C"])
    parser.add_argument("env")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--linear", action="store_true")
    parser.add_argument("--evaluate", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warm", action="store_true")
    arguments = parser.parse_args()

    import stable_baselines3
    import torch
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(arguments.threads)
    settings = dict(arguments.settings)
    if arguments.linear:
        for key in ("learning_rate", "clip_range"):
            settings[key] = linear(settings.get(key, 0.2))
    env = make_vec_env(
        arguments.env, n_envs=arguments.envs, seed=arguments.seed
    )
    model = getattr(stable_baselines3, arguments.algorithm)(
        "MlpPolicy", env, seed=arguments.seed, device="cpu", **settings
    )
    if arguments.warm:
        model.learn(arguments.envs * settings["n_steps"])
    start = time.perf_counter()
    model.learn(arguments.steps, reset_num_timesteps=not arguments.warm)
    seconds = time.perf_counter() - start
    result = {"steps_per_second": arguments.steps / seconds}
    if arguments.evaluate:
        result["return"], _ = evaluate_policy(
            model,
            make_vec_env(arguments.env, seed=arguments.seed + 1000),
            n_eval_episodes=arguments.evaluate,
        )
    print(json.dumps({key: float(value) for key, value in result.items()}))


def linear(start):
    """Returns a schedule from `start` to 0."""
    return lambda remaining: remaining * start


if __name__ == "__main__":
    main()
