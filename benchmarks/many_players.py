"""Trainings in games of several players, beside each other.

    python benchmarks/many_players.py team [--pairs 5]
    python benchmarks/many_players.py one [--pairs 5]

trains one shared policy of 8 players, and a team of two members with 4 players
each, in turn, in the same games, which cost nearly nothing; or `CartPole-v1`,
and the same as a game of one player. It prints the steps of players per second
of both, and the median ratio of their times.
"""

import argparse
import functools
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import gymnasium
import numpy as np

import keras_rl2 as rl
from tests.support.one_player import OnePlayer

STEPS = 40 * 2048


class Counting:
    """A game of 8 players, who all play 200 steps."""

    metadata: dict = {}
    unwrapped = property(lambda self: self)

    def __init__(self):
        names = ("red", "blue")
        self.possible_agents = [f"{n}_{i}" for n in names for i in range(4)]
        self.infos = {name: {} for name in self.possible_agents}
        self.ends = [dict.fromkeys(self.infos, over) for over in (False, True)]

    def observation_space(self, name):
        return gymnasium.spaces.Box(-1, 1, (8,), np.float32)

    def action_space(self, name):
        return gymnasium.spaces.Discrete(4)

    def observations(self):
        rows = self.generator.random((8, 8), np.float32)
        return dict(zip(self.infos, rows, strict=True))

    def reset(self, seed=None, options=None):
        self.agents, self.time = [*self.infos], 0
        self.generator = np.random.default_rng(seed)
        return self.observations(), self.infos

    def step(self, actions):
        self.time += 1
        over = self.ends[self.time == 200]
        if self.time == 200:
            self.agents = []
        rewards = {name: float(action) for name, action in actions.items()}
        return self.observations(), rewards, self.ends[0], over, self.infos


def shared():
    games = rl.envs.parallel(Counting, 8)
    return rl.PPO.for_env(games, seed=0), rl.RolloutDataset(games, seed=0)


def team():
    games = rl.envs.parallel(Counting, 8)
    members = {"red": rl.PPO, "blue": rl.PPO}
    model = rl.Team.for_env(games, members, seed=0)
    return model, rl.TeamDataset(games, seed=0)


def plain():
    make = functools.partial(gymnasium.make, "CartPole-v1")
    rollouts = rl.RolloutDataset(make, seed=0)
    return rl.PPO.for_env(rollouts.env, seed=0), rollouts


def of_one():
    games = rl.envs.parallel(OnePlayer)
    return rl.PPO.for_env(games, seed=0), rl.RolloutDataset(games, seed=0)


CASES = {
    "team": {"shared policy": shared, "team": team},
    "one": {"environment": plain, "game of one": of_one},
}


def measure(case, pairs):
    """Prints how long the second training takes beside the first."""
    trainings = {name: make() for name, make in CASES[case].items()}
    speeds = {name: [] for name in trainings}
    for pair in range(pairs + 1):
        for name, (model, data) in trainings.items():
            before, start = model.env_steps, time.perf_counter()
            model.fit(data, total_steps=STEPS, verbose=0)
            seconds = time.perf_counter() - start
            if pair:
                # The first one compiles.
                speeds[name].append((model.env_steps - before) / seconds)
    for name, each in speeds.items():
        print(f"{name}: {statistics.median(each):,.0f} steps/s")
    ratios = [a / b for a, b in zip(*speeds.values(), strict=True)]
    print(f"times the time of one: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    measure(arguments.case, arguments.pairs)
