"""Measures the peak memory of trainings beside Stable-Baselines3, in turn.

    python benchmarks/memory.py [--peer VENV/bin/python] [--only CASE ...]

prints the peak resident memory of both sides in MiB, medians of alternate runs,
each in a process of its own. The case `replay` is of ours alone: a buffer of
50,000 images, 1,346 MiB, when it is full, at the peak of the first checkpoint,
and at the peak of a process that resumes from it.
"""

import json
import multiprocessing
import statistics
import sys
import tempfile
from pathlib import Path

import gymnasium as gym
import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks import peers
from benchmarks.peer_sb3 import peak_rss_mib
from benchmarks.pictures import register

PICTURES = {"env": "Frames-v0"}
PPO = PICTURES | {"algorithm": "PPO", "envs": 16}
DQN = PICTURES | {"algorithm": "DQN", "envs": 4}
SAC = {"algorithm": "SAC", "envs": 1}
CASES = {
    **{f"ppo-{n}": PPO | {"horizon": n} for n in (64, 256, 1024)},
    **{f"dqn-{n}": DQN | {"round": n} for n in (64, 640, 2560)},
    "sac-wide": SAC | {"env": "Wide-v0", "steps": 1500},
    "sac-humanoid": SAC | {"env": "Humanoid-v5", "steps": 3000},
}


class Wide(gym.Env):
    """Observations of 10,000 numbers."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (10_000,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float32)
    observation = np.linspace(-1.0, 1.0, 10_000, dtype=np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation, {}

    def step(self, action):
        ended = bool(self.np_random.random() < 0.01)
        return self.observation, float(action[0]), ended, False, {}


def main():
    arguments = peers.parse_cases(__doc__, [*CASES, "replay"])
    if arguments.side:
        register()
        gym.register("Wide-v0", Wide)
        run = ours if arguments.side == "ours" else peer
        run(**CASES[arguments.only[0]])
        print(json.dumps({"peak_rss_mib": peak_rss_mib()}))
        return
    if "replay" in arguments.only:
        arguments.only.remove("replay")
        context = multiprocessing.get_context("spawn")
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                process = context.Process(target=keep_replay, args=(folder,))
                process.start()
                process.join()
    for case in arguments.only:
        results = peers.run_case(__file__, case, arguments)
        print(case, end="")
        for name, each in results.items():
            peak = statistics.median(row["peak_rss_mib"] for row in each)
            print(f"  {name} {peak:.0f} MiB", end="")
        print(flush=True)


def ours(algorithm, env, envs, horizon=None, round=None, steps=None):
    import keras_rl2 as rl

    agent = getattr(rl, algorithm).for_env(env, seed=0)
    if algorithm == "PPO":
        sizes = {"horizon": horizon, "batch_size": 256, "passes": 1}
        dataset = rl.RolloutDataset(env, num_envs=envs, seed=0, **sizes)
        steps = 2 * envs * horizon
    elif algorithm == "DQN":
        sizes = {"steps_per_round": round, "updates_per_round": round // 4}
        sizes |= {"capacity": 10_000, "batch_size": 32, "warm_up": 400}
        dataset = rl.ReplayDataset(env, num_envs=envs, seed=0, **sizes)
        steps = 400 + max(2 * round, 640)
    else:
        dataset = rl.ReplayDataset(env, capacity=20_000, warm_up=100, seed=0)
    agent.fit(dataset, total_steps=steps, verbose=0)


def keep_replay(folder):
    """Fills a replay and saves it, or resumes from what has been saved."""
    import keras_rl2 as rl

    register()
    size = 50_000
    sizes = {"capacity": size, "warm_up": size, "batch_size": 32}
    agent = rl.DQN.for_env("Frames-v0", seed=0)
    replay = rl.ReplayDataset("Frames-v0", num_envs=4, seed=0, **sizes)
    epochs = 2
    if not any(Path(folder).iterdir()):
        epochs = 1
        replay.bind(agent)
        replay.fill(size)
        print(f"replay  full {peak_rss_mib():.0f} MiB", end="", flush=True)
    checkpoint = rl.callbacks.Checkpoint(folder)
    agent.fit(replay, epochs=epochs, callbacks=[checkpoint], verbose=0)
    print(f"  then at most {peak_rss_mib():.0f} MiB", flush=True)


def peer(algorithm, env, envs, horizon=None, round=None, steps=None):
    import stable_baselines3 as sb3
    import torch
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(2)
    policy = "CnnPolicy" if env == "Frames-v0" else "MlpPolicy"
    settings = {"buffer_size": 20_000}
    if algorithm == "PPO":
        settings = {"n_steps": horizon, "batch_size": 256, "n_epochs": 1}
        steps = 2 * envs * horizon
    elif algorithm == "DQN":
        settings = {"buffer_size": 10_000, "learning_starts": 400}
        settings |= {"train_freq": round // envs, "gradient_steps": round // 4}
        settings |= {"batch_size": 32}
        steps = 400 + max(2 * round, 640)
    model = getattr(sb3, algorithm)(
        policy, make_vec_env(env, envs, seed=0), device="cpu", **settings
    )
    model.learn(steps)


if __name__ == "__main__":
    main()
