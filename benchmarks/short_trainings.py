"""Hashes of short trainings, to show that a change of form changes no number.

    python benchmarks/short_trainings.py > before.txt
    ...
    python benchmarks/short_trainings.py --same-as before.txt

Each line is a training, and a hash of its weights, its logs and the steps that
it took. Hashes are of this machine, its TensorFlow and its number of threads.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import gymnasium
import keras
import numpy as np

import keras_rl2 as rl

_DISCRETE, _BOX = "CartPole-v1", "Pendulum-v1"
_TIMES = ("steps_per_second", "updates_per_second")


class Masked(gymnasium.Wrapper):
    """CartPole whose second action is not always allowed."""

    def __init__(self):
        super().__init__(gymnasium.make(_DISCRETE))
        self.observation_space = gymnasium.spaces.Dict(
            {
                "observation": self.env.observation_space,
                "action_mask": gymnasium.spaces.MultiBinary(2),
            }
        )

    def _masked(self, observation):
        mask = np.array([1, observation[2] > 0], np.int8)
        return {"observation": observation, "action_mask": mask}

    def reset(self, **arguments):
        """Begins an episode."""
        observation, info = self.env.reset(**arguments)
        return self._masked(observation), info

    def step(self, action):
        """Takes a step."""
        observation, *rest = self.env.step(action)
        return self._masked(observation), *rest


def _rollouts(env=_DISCRETE, **arguments):
    arguments = {"horizon": 32, "passes": 2, "batch_size": 16, **arguments}
    return rl.RolloutDataset(env, num_envs=2, seed=0, **arguments)


def _replay(env, **arguments):
    return rl.ReplayDataset(
        env,
        batch_size=16,
        warm_up=64,
        steps_per_round=16,
        updates_per_round=4,
        rounds_per_epoch=3,
        seed=0,
        **arguments,
    )


def _fit(algorithm, dataset, **settings):
    make = getattr(rl, algorithm)
    settings = {"hidden": (8, 8), "seed": 0, **settings}
    agent = make.for_env(dataset.env, **settings)
    return agent, agent.fit(dataset, epochs=4, verbose=0)


def _offline(algorithm, env, **settings):
    with tempfile.TemporaryDirectory() as path:
        rl.record("random", env, steps=300, path=path, seed=0)
        dataset = rl.OfflineDataset(path, batch_size=16, seed=0)
    agent = getattr(rl, algorithm).for_env(
        gymnasium.make(env),
        hidden=(8, 8),
        seed=0,
        **settings,
    )
    return agent, agent.fit(dataset, epochs=1, verbose=0)


TRAININGS = {
    "A2C": lambda: _fit("A2C", _rollouts(passes=1, batch_size=None)),
    "PPO": lambda: _fit("PPO", _rollouts(), target_kl=0.01),
    "PPO, Box": lambda: _fit("PPO", _rollouts(_BOX, scale_rewards=True)),
    "PPO, LSTM": lambda: _fit(
        "PPO",
        _rollouts(sequence_length=8),
        memory=keras.layers.LSTMCell(8, seed=0),
    ),
    "PPO, masks": lambda: _fit("PPO", _rollouts(Masked)),
    "REINFORCE": lambda: _fit(
        "REINFORCE", _rollouts(horizon=200, passes=1, batch_size=None)
    ),
    "APPO": lambda: _fit("APPO", _rollouts()),
    "DQN": lambda: _fit("DQN", _replay(_DISCRETE)),
    "DQN, Rainbow": lambda: _fit(
        "DQN",
        _replay(_DISCRETE, prioritized=True, n_step=3),
        dueling=True,
        distributional="categorical",
        atoms=11,
        support=(0.0, 50.0),
    ),
    "DQN, GRU": lambda: _fit(
        "DQN",
        _replay(_DISCRETE, sequence_length=8),
        memory=keras.layers.GRUCell(8, seed=0),
    ),
    "SAC": lambda: _fit("SAC", _replay(_BOX)),
    "SAC, Discrete": lambda: _fit("SAC", _replay(_DISCRETE)),
    "TD3": lambda: _fit("TD3", _replay(_BOX)),
    "DDPG": lambda: _fit("DDPG", _replay(_BOX)),
    "BehaviorCloning": lambda: _offline("BehaviorCloning", _DISCRETE),
    "CQL": lambda: _offline("CQL", _DISCRETE),
    "CQL, Box": lambda: _offline("CQL", _BOX),
    "IQL": lambda: _offline("IQL", _BOX),
    "TD3BC": lambda: _offline("TD3BC", _BOX),
}


def training_hash(name):
    """Trains once; returns the hash of all that came of it."""
    agent, history = TRAININGS[name]()
    found = hashlib.sha256()
    for weight in agent.get_weights():
        found.update(np.asarray(weight).tobytes())
    logs = {
        key: np.asarray(values, np.float64).tobytes().hex()
        for key, values in sorted(history.history.items())
        if key not in _TIMES
    }
    found.update(json.dumps(logs).encode())
    found.update(str(agent.env_steps).encode())
    return found.hexdigest()[:16]


def main():
    """Prints the hashes, and compares them with those of a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="trainings; all if left out")
    parser.add_argument("--same-as", type=Path, metavar="FILE")
    asked = parser.parse_args()
    before = {}
    if asked.same_as:
        lines = asked.same_as.read_text("utf-8").splitlines()
        before = dict(line.rsplit(": ", 1) for line in lines)
    differ = []
    for name in asked.names or TRAININGS:
        found = training_hash(name)
        print(f"{name}: {found}", flush=True)
        if asked.same_as and before.get(name) != found:
            differ.append(name)
    if asked.same_as:
        print("differ: " + (", ".join(differ) or "none"), file=sys.stderr)
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
