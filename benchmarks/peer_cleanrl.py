"""Runs CleanRL's `ppo.py` on a game of PettingZoo and prints one JSON line.

    python benchmarks/peer_cleanrl.py PPO_PY mpe2.simple_spread_v3 \
        --games 16 --steps 300000 --seed 0

Runs in a virtual environment of its own (torch, supersuit, mpe2). CleanRL's
script makes `gymnasium.vector.SyncVectorEnv`; here it gets SuperSuit's vector
of all players instead, and is otherwise run as it is.
"""

import argparse
import importlib
import json
import runpy
import sys
import time

import gymnasium
import numpy as np
import supersuit


class Players(gymnasium.vector.VectorEnv):
    """SuperSuit's vector of players, with the spaces that CleanRL reads."""

    def __init__(self, game, games):
        made = importlib.import_module(game).parallel_env()
        vector = supersuit.pettingzoo_env_to_vec_env_v1(made)
        self.vector = supersuit.concat_vec_envs_v1(vector, games)
        self.num_envs = self.vector.num_envs
        self.single_observation_space = self.vector.observation_space
        self.single_action_space = self.vector.action_space
        self.returns, self.done = np.zeros(self.num_envs), []

    def reset(self, *, seed=None, options=None):
        self.start = time.perf_counter()
        return self.vector.reset(seed=seed)[0], {}

    def step(self, actions):
        observation, reward, terminated, truncated, _ = self.vector.step(
            actions
        )
        self.returns += reward
        for row in np.flatnonzero(terminated | truncated):
            self.done.append(self.returns[row])
            self.returns[row] = 0.0
        return observation, reward, terminated, truncated, {}

    def close(self, **kwargs):
        self.seconds = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("script", help="CleanRL's ppo.py")
    parser.add_argument("game")
    parser.add_argument("--games", type=int, default=16)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    import torch

    torch.set_num_threads(1)
    players = Players(arguments.game, arguments.games)
    gymnasium.vector.SyncVectorEnv = lambda _: players
    sys.argv = [
        arguments.script,
        f"--total-timesteps={arguments.steps}",
        f"--num-envs={players.num_envs}",
        f"--seed={arguments.seed}",
        "--no-cuda",
    ]
    runpy.run_path(arguments.script, run_name="__main__")
    result = {
        # Of the policy that samples, as CleanRL reports it.
        "return": float(np.mean(players.done[-300:])),
        "steps_per_second": arguments.steps / players.seconds,
        "seconds": players.seconds,
    }
    curve = np.array_split(players.done, 12)
    result["curve"] = [round(float(each.mean()), 1) for each in curve]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
