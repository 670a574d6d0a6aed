"""Times agents on pictures beside Stable-Baselines3, in turn.

    python benchmarks/pictures.py --peer VENV/bin/python [--only CASE ...]

prints the steps per second of both sides and their ratio, medians of alternate
runs. Frames are random numbers; the ROMs of `atari` come with ale_py.
"""

import json
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks import peers
from benchmarks.peer_sb3 import peak_rss_mib

PPO = {"algorithm": "PPO", "envs": 16, "horizon": 64, "steps": 3072}
CASES = {
    "ppo": PPO | {"env": "Frames-v0"},
    "dqn": {"algorithm": "DQN", "envs": 4, "steps": 2000, "env": "Frames-v0"},
    "dict": PPO | {"env": "FramesAndVector-v0"},
    "atari": PPO | {"envs": 8, "horizon": 128, "env": "pong"},
}
# Transitions before the first update of DQN.
WARM_UP = 400


class Frames(gym.Env):
    """Random frames, of which one in 200 ends an episode.

    Args:
        with_vector: bool. Whether observations are Dicts of a picture and a
            vector.
    """

    action_space = gym.spaces.Discrete(6)

    def __init__(self, with_vector=False):
        channels = 1 if with_vector else 4
        frame = gym.spaces.Box(0, 255, (84, 84, channels), np.uint8)
        vector = gym.spaces.Box(-1.0, 1.0, (8,), np.float32)
        self.with_vector = with_vector
        self.observation_space = (
            gym.spaces.Dict(frame=frame, vector=vector)
            if with_vector
            else frame
        )
        rng = np.random.default_rng(0)
        self.frames = rng.integers(0, 256, (8, *frame.shape), np.uint8)
        self.time = 0

    def observation(self):
        self.time += 1
        frame = self.frames[self.time % 8]
        if not self.with_vector:
            return frame
        return {"frame": frame, "vector": np.full(8, 0.1, np.float32)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation(), {}

    def step(self, action):
        reward = float(self.np_random.normal())
        ended = bool(self.np_random.random() < 0.005)
        return self.observation(), reward, ended, False, {}


def register():
    gym.register("Frames-v0", Frames)
    gym.register("FramesAndVector-v0", Frames, kwargs={"with_vector": True})


def main():
    arguments = peers.parse_cases(__doc__, CASES)
    if arguments.side:
        register()
        run = ours if arguments.side == "ours" else peer
        print(json.dumps(run(**CASES[arguments.only[0]])))
        return
    for case in arguments.only:
        results = peers.run_case(__file__, case, arguments)
        print(f"{case}: {CASES[case]}")
        peers.print_speeds(results)


def ours(algorithm, env, envs, steps, horizon=None):
    import keras

    import keras_rl2 as rl

    made = {"env": env, "num_envs": envs}
    if env == "pong":
        from ale_py.vector_env import AtariVectorEnv

        made = {"env": AtariVectorEnv(env, envs, reward_clipping=True)}
    if algorithm == "DQN":
        sizes = {"steps_per_round": 64, "updates_per_round": 16}
        dataset = rl.ReplayDataset(
            **made, **sizes, capacity=10_000, batch_size=32, warm_up=WARM_UP
        )
    else:
        dataset = rl.RolloutDataset(
            **made, horizon=horizon, batch_size=256, passes=4
        )
    # As the peer's.
    plain = {"double": False, "tau": 1.0, "target_every": 10_000}
    settings = plain if algorithm == "DQN" else {}
    agent = getattr(rl, algorithm).for_env(made["env"], seed=0, **settings)
    agent.compile(keras.optimizers.Adam(2.5e-4))
    agent.fit(dataset, total_steps=max(WARM_UP + 200, 1024), verbose=0)
    return timed(
        lambda: agent.fit(dataset, total_steps=steps, verbose=0), steps
    )


def peer(algorithm, env, envs, steps, horizon=None):
    import stable_baselines3 as sb3
    import torch
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecFrameStack

    torch.set_num_threads(2)
    policy = "MultiInputPolicy" if "Vector" in env else "CnnPolicy"
    if env == "pong":
        import ale_py

        gym.register_envs(ale_py)
        made = make_atari_env("PongNoFrameskip-v4", envs, seed=0)
        made = VecFrameStack(made, 4)
    else:
        made = make_vec_env(env, envs, seed=0)
    if algorithm == "DQN":
        settings = {
            "learning_starts": WARM_UP,
            "train_freq": 1,
            "buffer_size": 10_000,
        }
    else:
        settings = {"n_steps": horizon, "batch_size": 256, "n_epochs": 4}
    model = getattr(sb3, algorithm)(
        policy, made, 2.5e-4, device="cpu", **settings
    )
    model.learn(max(WARM_UP + 200, 1024))
    return timed(lambda: model.learn(steps, reset_num_timesteps=False), steps)


def timed(train, steps):
    """Returns the speed of a training and the memory of its process."""
    begin = time.perf_counter()
    train()
    seconds = time.perf_counter() - begin
    return {"steps_per_second": steps / seconds, "peak_rss_mib": peak_rss_mib()}


if __name__ == "__main__":
    main()
