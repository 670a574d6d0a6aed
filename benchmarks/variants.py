"""Trains the variants of agents that no preset or default shows.

    python benchmarks/variants.py tqc-hopper sac-hopper --seeds 3
    python benchmarks/variants.py tqc-hopper --peer VENV/bin/python --seeds 3
    python benchmarks/variants.py spread-shared --peer PYTHON --cleanrl PPO_PY
    python benchmarks/variants.py --report

prints the greedy return of each seed, their interquartile mean, and the
environment steps per second. What has been run is kept in `results/variants`,
a file for each row, and is not run again.

A peer is the algorithm of the same name of Stable-Baselines3 or sb3-contrib, or
CleanRL's `ppo.py` in games, with its own defaults and the settings of `peer`.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

import gymnasium as gym
import numpy as np

from benchmarks import defaults
from benchmarks import peers
from benchmarks.peer_sb3 import peak_rss_mib
from benchmarks.results import Results

KEPT = defaults.HERE / "results" / "variants"
_HOPPER = {"env": "Hopper-v5", "steps": 100_000}
_BLIND = "benchmarks.variants:PendulumWithoutVelocity-v0"
_BITS = {"algorithm": "DQN", "env": "benchmarks.variants:Bits-v0"}
# Sixteen games of three players; the peer is CleanRL's `ppo.py`.
_SPREAD = {
    "algorithm": "PPO",
    "env": "mpe2:simple_spread_v3",
    "games": 16,
    "steps": 300_000,
    "dataset": {
        "horizon": 128,
        "passes": 4,
        "batch_size": 1536,
        # Rewards are far from 0, and episodes are cut after 25 steps.
        "scale_rewards": False,
    },
}
_REDQ = {"critics_in_target": 2, "policy_delay": 20}
# One update for each four steps, each of 32 sequences of 16 steps.
_SEQUENCES = {
    "batch_size": 32,
    "sequence_length": 16,
    "burn_in": 4,
    "updates_per_round": 16,
}
_DENSE = {"batch_size": 32, "sequence_length": 16, "burn_in": 4}
ROWS = {
    "sac-hopper": {"algorithm": "SAC", **_HOPPER, "peer": {}},
    "tqc-hopper": {"algorithm": "TQC", **_HOPPER, "peer": {}},
    "spread-shared": {**_SPREAD, "peer": "cleanrl"},
    "spread-mappo": {
        **_SPREAD,
        "include": ["state"],
        "agent": {"critic_sees": "state"},
    },
    "simba-hopper": {
        "algorithm": "SAC",
        **_HOPPER,
        "agent": {"network": "simba"},
    },
    "sac-hopper-short": {"algorithm": "SAC", **_HOPPER, "steps": 30_000},
    "redq-hopper": {
        "algorithm": "SAC",
        **_HOPPER,
        "steps": 30_000,
        "agent": {"num_critics": 10, **_REDQ},
        "dataset": {"updates_per_round": 20 * 64},
    },
    "droq-hopper": {
        "algorithm": "SAC",
        **_HOPPER,
        "steps": 30_000,
        "agent": {"critic_dropout": 0.01, **_REDQ},
        "dataset": {"updates_per_round": 20 * 64},
    },
    "hindsight-bits": {
        **_BITS,
        "steps": 30_000,
        "dataset": {"hindsight": {"strategy": "future"}},
    },
    "no-hindsight-bits": {**_BITS, "steps": 30_000},
    "sac-pendulum": {"algorithm": "SAC", "env": "Pendulum-v1", "steps": 15_000},
    "sac-memory-pendulum": {
        "algorithm": "SAC",
        "env": _BLIND,
        "steps": 15_000,
        "memory": 64,
        "learning_rate": 1e-3,
        "agent": {"hidden": [64, 64]},
        "dataset": _SEQUENCES,
    },
    "td3-memory-pendulum": {
        "algorithm": "TD3",
        "env": _BLIND,
        "steps": 15_000,
        "memory": 64,
        "learning_rate": 1e-3,
        "agent": {"hidden": [64, 64]},
        "dataset": {**_DENSE, "updates_per_round": 32},
    },
    "gsde-mountain-car": {
        "algorithm": "PPO",
        "env": "MountainCarContinuous-v0",
        "steps": 20_000,
        "learning_rate": 7.77e-5,
        "agent": {
            "state_dependent_noise": -3.29,
            "initialization": "fan_in",
            "normalize_observations": True,
            "clip_ratio": 0.1,
            "gamma": 0.9999,
            "gae_lambda": 0.9,
            "entropy_coefficient": 0.00429,
            "value_coefficient": 0.19,
            "max_gradient_norm": 5.0,
        },
        "dataset": {"horizon": 8, "passes": 10, "batch_size": None},
    },
    "gsde-sac-pendulum": {
        "algorithm": "SAC",
        "env": "Pendulum-v1",
        "steps": 20_000,
        "learning_rate": 1e-3,
        "agent": {"state_dependent_noise": True},
    },
    "rainbow-lunar-lander": {
        "algorithm": "DQN",
        "env": "LunarLander-v3",
        "steps": 100_000,
        "agent": {
            "noisy": True,
            "dueling": True,
            "distributional": "categorical",
            "support": [-300.0, 300.0],
        },
        "dataset": {"n_step": 3, "prioritized": True},
    },
    "fasttd3-pendulum": {
        "algorithm": "TD3",
        "env": "Pendulum-v1",
        "graph_envs": 1024,
        "steps": 400_000,
        "agent": {
            "distributional": "categorical",
            "atoms": 101,
            "support": [-1700.0, 0.0],
            "exploration": {
                "class_name": "gaussian",
                "config": {"scale": 0.4, "lowest": 0.001},
            },
        },
        "dataset": {
            "batch_size": 2048,
            "steps_per_round": 1024,
            "updates_per_round": 2,
            "warm_up": 10_240,
        },
    },
}


class BitFlipping(gym.Env):
    """Fifteen bits, of which each action flips one, until all are right.

    Andrychowicz et al., 2017, section 3.1.
    """

    BITS = 15
    action_space = gym.spaces.Discrete(BITS)
    observation_space = gym.spaces.Dict(
        dict.fromkeys(
            ("observation", "achieved_goal", "desired_goal"),
            gym.spaces.MultiBinary(BITS),
        )
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.bits, self.goal = self.np_random.integers(
            0, 2, (2, self.BITS), np.int8
        )
        return self.observation(), {}

    def step(self, action):
        self.bits[action] ^= 1
        reached = bool(self.compute_terminated(self.bits, self.goal, {}))
        return self.observation(), float(reached) - 1.0, reached, False, {}

    def observation(self):
        bits = self.bits.copy()
        names = ("observation", "achieved_goal", "desired_goal")
        return dict(zip(names, (bits, bits, self.goal), strict=True))

    def compute_reward(self, achieved_goal, desired_goal, info):
        return self.compute_terminated(achieved_goal, desired_goal, info) - 1.0

    def compute_terminated(self, achieved_goal, desired_goal, info):
        return (achieved_goal == desired_goal).all(axis=-1)


def pendulum_without_velocity():
    """Returns Pendulum that observes only its angle."""
    env = gym.make("Pendulum-v1")
    space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)
    return gym.wrappers.TransformObservation(env, lambda seen: seen[:2], space)


gym.register("Bits-v0", BitFlipping, max_episode_steps=BitFlipping.BITS)
gym.register("PendulumWithoutVelocity-v0", pendulum_without_velocity)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="row")
    parser.add_argument("--peer", help="a Python with sb3-contrib")
    parser.add_argument("--cleanrl", help="its ppo.py, for games of players")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--report", action="store_true", help="train nothing")
    parser.add_argument("--run", choices=ROWS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(train(ROWS[arguments.run], arguments.seed)))
        return
    arguments.settings = arguments.again = arguments.curves = None
    if not arguments.report:
        defaults.run_all(jobs(arguments), KEPT, arguments)
    print(table())


def jobs(arguments):
    """Yields what is to be run; see `defaults.run_all`."""
    for name in arguments.rows or ROWS:
        row = ROWS[name]
        for seed in range(arguments.seeds):
            ours = [sys.executable, __file__, "--run", name]
            yield name, row, defaults.OURS, seed, [*ours, "--seed", str(seed)]
            if arguments.cleanrl and row.get("peer") == "cleanrl":
                command = cleanrl_command(arguments, row, seed)
                yield name, row, defaults.PEER, seed, command
            elif arguments.peer and type(row.get("peer")) is dict:
                command = peers.peer_command(
                    arguments.peer,
                    row["algorithm"],
                    row["env"],
                    row["peer"],
                    library="contrib" if row["algorithm"] == "TQC" else "sb3",
                    envs=1,
                    steps=row["steps"],
                    seed=seed,
                    evaluate=defaults.EPISODES,
                    threads=1,
                )
                yield name, row, defaults.PEER, seed, command


def cleanrl_command(arguments, row, seed):
    """Returns the command that trains CleanRL's PPO in a game of PettingZoo."""
    return [
        arguments.peer,
        str(Path(__file__).with_name("peer_cleanrl.py")),
        arguments.cleanrl,
        row["env"].replace(":", "."),
        *("--games", str(row["games"])),
        *("--steps", str(row["steps"])),
        *("--seed", str(seed)),
    ]


def train(row, seed):
    """Trains ours on one seed, and returns what is kept of it."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    import keras

    import keras_rl2 as rl

    env = row["env"]
    if "graph_envs" in row:
        env = rl.envs.GraphVectorEnv(env, num_envs=row["graph_envs"])
    elif "games" in row:
        env = rl.envs.parallel(
            env, row["games"], include=row.get("include", ())
        )
    options = {"seed": seed, **row.get("dataset", {})}
    if "hindsight" in options:
        options["hindsight"] = rl.Hindsight(**options["hindsight"])
    kind = getattr(rl, row["algorithm"])
    dataset = rl.RolloutDataset if kind.on_policy else rl.ReplayDataset
    data = dataset(env, **options)
    settings = dict(row.get("agent", {}))
    if "memory" in row:
        settings["memory"] = keras.layers.LSTMCell(row["memory"])
    agent = kind.for_env(data.env, seed=seed, **settings)
    if "learning_rate" in row:
        agent.compile(keras.optimizers.Adam(row["learning_rate"]))
    start = time.perf_counter()
    agent.fit(data, total_steps=row["steps"], verbose=0)
    seconds = time.perf_counter() - start
    is_game = "games" in row
    result = agent.evaluate(
        env if is_game else row["env"],
        episodes=480 if is_game else 100,
        # CleanRL reports returns of the policy that samples.
        deterministic=not is_game,
        seed=seed + 1000,
    )
    return {
        "return": float(result["episode_return"]),
        "episode_length": float(result["episode_length"]),
        "steps_per_second": agent.env_steps / seconds,
        "seconds": seconds,
        "peak_rss_mib": peak_rss_mib(),
    }


def table():
    """Returns the table of what is kept, in Markdown."""
    from keras_rl2.cli.plot import interquartile_mean

    lines = [
        "| Row | Side | Steps | Return | Seeds | Steps per second |",
        "| --- | --- | ---: | ---: | --- | ---: |",
    ]
    for name, row in ROWS.items():
        for side, runs in Results.of(KEPT, name, row).runs.items():
            kept = [run for _, run in sorted(runs.items())]
            returns = [run["return"] for run in kept]
            speed = np.median([run["steps_per_second"] for run in kept])
            lines.append(
                f"| {name} | {side} | {row['steps'] // 1000}k "
                f"| {interquartile_mean(np.array(returns)):.1f} "
                f"| {', '.join(f'{each:.1f}' for each in returns)} "
                f"| {speed:.0f} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
