"""Agents that learn from recorded data, beside d3rlpy on the same data.

    python benchmarks/offline.py --peer VENV/bin/python
    python benchmarks/offline.py --peer VENV/bin/python hopper-IQL
    python benchmarks/offline.py --curves --seeds 5 --peer VENV/bin/python
    python benchmarks/offline.py --report

Both sides learn from the same arrays with as many updates, the same widths,
rates and minibatches, a seed after the other and one thread each, and print
greedy returns and updates per second. What has been run is kept in
`benchmarks/results/offline` and not run again while its settings stay;
BENCHMARKS.md is written from there. `VENV` has d3rlpy and gymnasium[mujoco].
With `--curves` the cases of `CURVES` are trained, and their greedy returns on
the way are kept in `results/curves`: `agent_curves.py` draws them.

Data is made by seeded agents of ours in `--data`, once: 20,480 steps of a SAC
that learns Pendulum, 20,480 of one that learns InvertedPendulum, 50,000 of
CartPole, half of them random, 10,000 of a trained PPO's CartPole, 200,000 of a
half trained PPO's Hopper. Processors round differently, so that the episodes of
Hopper bring 958 if made on one and 985 on another: compare with "Data" beside
them.
"""

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from benchmarks import curves
from benchmarks import markdown
from benchmarks import peers
from benchmarks.results import Results
from benchmarks.table import KEPT
from benchmarks.table import TABLE
from support import recorded_tasks

PENDULUM = {
    "env": "Pendulum-v1",
    "data": "medium_replay_of_pendulum",
    "hidden": [64, 64],
    "batch_size": 128,
    "learning_rate": 1e-3,
    "updates": 20_000,
}
CARTPOLE = {
    "env": "CartPole-v1",
    "data": "mixed_cartpole",
    "hidden": [256, 256],
    "batch_size": 64,
    "learning_rate": 3e-4,
    "updates": 10_000,
    # What is d3rlpy's CQL is double anyway.
    "arguments": {"double": True, "tau": 0.03, "normalization": "none"},
    "peer": {"target_update_interval": 33},
}
HOPPER = {
    "env": "Hopper-v5",
    "data": "medium_hopper",
    "hidden": [256, 256],
    "batch_size": 256,
    "learning_rate": 3e-4,
    "updates": 100_000,
}
# `arguments` are ours, `peer` are d3rlpy's names of the same, and what it has
# by default otherwise. Its squared errors are whole, so that its weight of the
# penalty is twice ours; its targets are copied, where ours follow by 0.03.
CASES = {
    "pendulum-CQL": {
        **PENDULUM,
        "updates": 6000,
        "arguments": {"alpha": 0.5, "num_samples": 4},
        "peer": {
            "conservative_weight": 1.0,
            "n_action_samples": 4,
            "soft_q_backup": True,
            "alpha_learning_rate": 0.0,
        },
    },
    "pendulum-IQL": {
        **PENDULUM,
        "arguments": {"inverse_temperature": 1.5, "expectile": 0.9},
        "peer": {"weight_temp": 1.5, "expectile": 0.9},
    },
    "pendulum-TD3BC": {
        **PENDULUM,
        "arguments": {"normalize_observations": True, "alpha": 10.0},
        "peer": {"alpha": 10.0, "scales": True},
    },
    "pendulum-BehaviorCloning": {**PENDULUM, "arguments": {}, "peer": {}},
    "balance-TD3BC": {
        **PENDULUM,
        "env": "InvertedPendulum-v5",
        "data": "medium_replay_of_balance",
        "arguments": {"normalize_observations": True},
        "peer": {"scales": True},
    },
    "expert-BehaviorCloning": {
        **CARTPOLE,
        "data": "expert_cartpole",
        "arguments": {},
        "peer": {},
    },
    "cartpole-CQL": CARTPOLE,
    "cartpole-DQN": CARTPOLE,
    # d3rlpy has it for Box actions only.
    "cartpole-IQL": {**CARTPOLE, "arguments": {}, "peer": None},
    "hopper-IQL": {
        **HOPPER,
        "arguments": {"normalize_observations": True},
        "peer": {"scales": True},
        # The actor's rate falls to 0 by a cosine, as published.
        "falls": True,
    },
    "hopper-TD3BC": {
        **HOPPER,
        "arguments": {"normalize_observations": True},
        "peer": {"scales": True},
    },
}
#: Cases of which each agent has a picture.
CURVES = {
    "CQL": ("pendulum-CQL", "cartpole-CQL"),
    "IQL": ("pendulum-IQL", "cartpole-IQL"),
    "TD3BC": ("pendulum-TD3BC", "balance-TD3BC"),
    "BehaviorCloning": ("pendulum-BehaviorCloning", "expert-BehaviorCloning"),
}
# What is traced and compiled in the first of them is not timed.
UPDATES_PER_EPOCH = 1000


def main():
    arguments = parse()
    if arguments.task:
        print(json.dumps(ours(**json.loads(arguments.task))))
        return
    folder = arguments.data
    if folder is None and not arguments.report:
        folder = Path(tempfile.mkdtemp())
    if arguments.curves:
        for name in arguments.cases or itertools.chain(*CURVES.values()):
            keep_curves(name, data_of(CASES[name], folder), arguments)
        return
    if not arguments.report:
        for name in arguments.cases or CASES:
            compare(name, data_of(CASES[name], folder), arguments)
    markdown.write(KEPT, TABLE)


def parse():
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("cases", nargs="*", choices=[*CASES, []])
    parser.add_argument("--peer", help="a Python with d3rlpy")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", type=Path, help="where data is made or found")
    parser.add_argument(
        "--curves", action="store_true", help="keep curves, not a table"
    )
    parser.add_argument(
        "--report", action="store_true", help="write the table, train nothing"
    )
    parser.add_argument("--task", help=argparse.SUPPRESS)
    return parser.parse_args()


def data_of(case, folder):
    """Returns the file of a case's data, which is made if it is not there."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{case['data']}.npz"
    if not path.is_file():
        arrays = getattr(recorded_tasks, case["data"])()
        new = path.with_suffix(".new.npz")
        np.savez(new, **{key: arrays[key] for key in recorded_tasks.KEYS})
        os.replace(new, path)
    return path


def compare(name, path, arguments):
    """Trains both sides on each seed, in turn, and keeps what they print."""
    folder = KEPT / "offline"
    for seed in range(arguments.seeds):
        for side, command in commands(name, path, seed, arguments.peer).items():
            kept = Results.of(folder, name, CASES[name])
            if not kept.has(side, seed):
                run = peers.run(command)
                # Another case may have been kept meanwhile, never this one.
                kept.add(side, seed, run)
                kept.write(folder)
                print(name, seed, side, json.dumps(run), flush=True)


def keep_curves(name, path, arguments):
    """Trains both sides on each seed, and keeps their returns on the way."""
    for seed in range(arguments.seeds):
        for side, command in commands(name, path, seed, arguments.peer).items():
            if str(seed) not in curves.kept(f"{name}-{side}"):
                run = peers.run(command)
                wanted = {key: run[key] for key in ("behavior", "curve")}
                curves.keep(f"{name}-{side}", seed, wanted)


def commands(name, path, seed, peer):
    """Returns the command of each side."""
    case = CASES[name]
    algorithm = name.partition("-")[2]
    task = {
        **case,
        "algorithm": algorithm,
        "path": str(path),
        "seed": seed,
        "updates_per_epoch": UPDATES_PER_EPOCH,
    }
    found = {
        markdown.OURS: [sys.executable, __file__, "--task", json.dumps(task)]
    }
    if peer and case["peer"] is not None:
        script = str(peers.HERE / "peer_d3rlpy.py")
        found[markdown.OFFLINE_PEER] = [peer, script, json.dumps(task)]
    return found


def ours(algorithm, path, seed, **task):
    """Trains an agent of this library, and returns what is compared."""
    import gymnasium as gym
    import keras
    import numpy as np
    import tensorflow as tf

    import keras_rl2 as rl

    tf.config.threading.set_intra_op_parallelism_threads(1)
    arrays = dict(np.load(path))
    env = gym.make(task["env"])
    offline = rl.OfflineDataset(
        arrays,
        batch_size=task["batch_size"],
        updates_per_epoch=UPDATES_PER_EPOCH,
        observation_space=env.observation_space,
        action_space=env.action_space,
        seed=seed,
    )
    agent = getattr(rl, algorithm).for_env(
        task["env"], hidden=task["hidden"], seed=seed, **task["arguments"]
    )
    compile_with_rates(agent, task)
    seconds, curve = [], []

    def policy(observation):
        return agent.act(observation, deterministic=True)

    def score(epoch, logs):
        seconds[-1] += time.perf_counter()
        scored.update(recorded_tasks.score(task["env"], arrays, policy))
        curve.append([UPDATES_PER_EPOCH * (epoch + 1), scored["return"]])

    scored = {}
    timed = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda *_: seconds.append(-time.perf_counter()),
        on_epoch_end=score,
    )
    epochs = task["updates"] // UPDATES_PER_EPOCH
    agent.fit(offline, epochs=epochs, callbacks=[timed], verbose=0)
    estimates = agent.evaluate(offline, updates=0)
    return {
        **scored,
        "updates_per_second": UPDATES_PER_EPOCH / statistics.mean(seconds[1:]),
        "q_overestimation": estimates.get("q_overestimation"),
        "curve": curve,
    }


def compile_with_rates(agent, task):
    """Gives an agent the rates of a case, of which the actor's may fall."""
    import keras

    rate = task["learning_rate"]
    if not task.get("falls"):
        agent.compile(keras.optimizers.Adam(rate))
        return
    falling = keras.optimizers.schedules.CosineDecay(rate, task["updates"])
    agent.compile(
        keras.optimizers.Adam(falling),
        critic_optimizer=keras.optimizers.Adam(rate),
    )


if __name__ == "__main__":
    main()
