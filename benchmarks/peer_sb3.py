"""Runs Stable-Baselines3 (or SBX) on one task and prints one JSON line.

Runs in a virtual environment of its own (torch, stable-baselines3; for SBX
also JAX and sbx-rl), never in this project's: the other side of a ratio.
"""

import argparse
import copy
import importlib
import importlib.metadata
import json
import resource
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

LIBRARIES = {
    "sb3": "stable_baselines3",
    "contrib": "sb3_contrib",
    "sbx": "sbx",
}
PACKAGES = {
    "sb3": "stable-baselines3",
    "contrib": "sb3-contrib",
    "sbx": "sbx-rl",
}
ON_POLICY = ("PPO", "A2C")
OFF_POLICY = ("DQN", "SAC", "TD3", "DDPG", "CrossQ")
# Steps before the timed part: what is set up or compiled on first use.
WARM_UP = 1500


def main():
    arguments = parse()
    warnings.filterwarnings("ignore")

    import torch

    from benchmarks.episodes import curve_of
    from benchmarks.episodes import of_monitors

    torch.set_num_threads(arguments.threads)
    model = make_model(arguments)
    before = 0
    if arguments.warm:
        model.learn(warm_up_steps(arguments))
        before = model.num_timesteps
    start = time.perf_counter()
    solved = None
    if arguments.solve is None:
        model.learn(arguments.steps, reset_num_timesteps=not arguments.warm)
    else:
        solved = solve(model, arguments)
    seconds = time.perf_counter() - start
    # Whole rollouts are collected: it may be a little more than asked for.
    steps = model.num_timesteps - before
    episodes = of_monitors(model.get_env()) if arguments.curve else []
    result = {"steps_per_second": steps / seconds}
    if solved is not None:
        result |= {"return": solved, "steps": steps}
    elif arguments.evaluate:
        result["return"] = evaluate(model, arguments, arguments.evaluate)
    result["peak_rss_mib"] = peak_rss_mib()
    line = {key: float(value) for key, value in result.items()}
    if arguments.curve:
        line["curve"] = curve_of(episodes, arguments.steps)
    line["version"] = importlib.metadata.version(PACKAGES[arguments.library])
    print(json.dumps(line))


def parse():
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithm", choices=[*ON_POLICY, *OFF_POLICY])
    parser.add_argument("env")
    parser.add_argument("--library", choices=sorted(LIBRARIES), default="sb3")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--envs", type=int, help="8, or 1 off-policy")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--linear", action="store_true")
    parser.add_argument("--norm-observation", action="store_true")
    parser.add_argument("--norm-reward", action="store_true")
    parser.add_argument("--evaluate", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2, help="of torch")
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--curve", action="store_true", help="of training")
    parser.add_argument(
        "--solve",
        type=float,
        help="a greedy return of 20 episodes to end with, tried each --steps",
    )
    arguments = parser.parse_args()
    if arguments.envs is None:
        arguments.envs = 1 if arguments.algorithm in OFF_POLICY else 8
    return arguments


def make_model(arguments):
    """Makes the peer's agent from the constructor arguments in `settings`.

    Some of them are ours: `noise`, see `action_noise`; schedules and classes
    of activations as plain data.
    """
    library = importlib.import_module(LIBRARIES[arguments.library])
    # A copy: the algorithms write into `policy_kwargs`.
    settings = copy.deepcopy(arguments.settings)
    if arguments.linear:
        for key in ("learning_rate", "clip_range"):
            settings[key] = linear(settings.get(key, 0.2))
    for key in ("learning_rate", "clip_range"):
        if isinstance(settings.get(key), dict):
            settings[key] = schedule(**settings[key])
    policy = settings.get("policy_kwargs", {})
    if "activation_fn" in policy:
        import torch

        policy["activation_fn"] = getattr(torch.nn, policy["activation_fn"])
    if arguments.library != "sbx":
        settings["device"] = "cpu"
    env = make_env(arguments)
    noise = settings.pop("noise", None)
    if noise is not None:
        settings["action_noise"] = action_noise(noise, env.action_space)
    kind = getattr(library, arguments.algorithm)
    return kind("MlpPolicy", env, seed=arguments.seed, **settings)


def make_env(arguments):
    """Makes the environments, with running statistics where asked for."""
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    env = make_vec_env(
        arguments.env, n_envs=arguments.envs, seed=arguments.seed
    )
    if not (arguments.norm_observation or arguments.norm_reward):
        return env
    return VecNormalize(
        env,
        norm_obs=arguments.norm_observation,
        norm_reward=arguments.norm_reward,
        gamma=arguments.settings["gamma"],
    )


def action_noise(noise, space):
    """Makes exploration noise, in units of actions scaled to [-1, 1].

    Args:
        noise: The deviation of Gaussian noise; or the config of our
            Ornstein-Uhlenbeck noise, which has the peer's defaults.
        space: Box. Of the actions.
    """
    from stable_baselines3.common import noise as noises

    mean = 0.0 * space.low
    if isinstance(noise, dict):
        scale = noise["config"]["scale"]
        return noises.OrnsteinUhlenbeckActionNoise(mean, mean + scale)
    return noises.NormalActionNoise(mean, mean + noise)


def warm_up_steps(arguments):
    """Returns how many steps to take before the clock starts."""
    if arguments.algorithm in OFF_POLICY:
        return WARM_UP
    return arguments.envs * arguments.settings["n_steps"]


def evaluate(model, arguments, episodes, envs=1):
    """Returns the mean return of greedy episodes."""
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecNormalize

    env = make_vec_env(arguments.env, n_envs=envs, seed=arguments.seed + 1000)
    statistics = model.get_vec_normalize_env()
    if statistics is not None:
        env = VecNormalize(
            env, training=False, norm_obs=statistics.norm_obs, norm_reward=False
        )
        env.obs_rms = statistics.obs_rms
    mean, _ = evaluate_policy(model, env, n_eval_episodes=episodes)
    return mean


def solve(model, arguments):
    """Trains until the greedy return is as high as asked for; returns it."""
    found = 0.0
    while found < arguments.solve:
        model.learn(arguments.steps, reset_num_timesteps=False)
        returns = [each["r"] for each in model.ep_info_buffer]
        # An evaluation takes longer than the steps between two.
        if sum(returns) >= 300.0 * len(returns):
            found = evaluate(model, arguments, episodes=20, envs=20)
    return found


def peak_rss_mib():
    """Returns the most memory that this process has held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def linear(start):
    """Returns a schedule from `start` to 0."""
    return schedule(start, 0.0)


def schedule(initial, final, fraction=1.0, schedule="linear"):
    """Returns a linear schedule over a part of what remains of a run."""
    assert schedule == "linear"

    def value(remaining):
        done = min((1.0 - remaining) / fraction, 1.0)
        return initial + done * (final - initial)

    return value


if __name__ == "__main__":
    main()
