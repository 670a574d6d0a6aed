"""PPO with memory and nothing else, where velocities cannot be seen.

    python benchmarks/memory_by_default.py --peer VENV/bin/python

CartPole-v1 in 8 environments, with `memory=` a cell of 64 units and a rate;
all else is the default. Beside it sb3-contrib's RecurrentPPO, whose own
defaults are an LSTM for the policy and one for the value: it has 64 units too,
8 environments and the same rate. What has been run is kept in `results/memory`
and is not run again. The table of docs/defaults.md is written when all is done.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from benchmarks.defaults import EPISODES
from benchmarks.defaults import OURS
from benchmarks.defaults import TABLE
from benchmarks.defaults import run_all
from benchmarks.defaults import shown
from benchmarks.marked import write_between
from benchmarks.results import Results

HERE = Path(__file__).resolve().parent
KEPT = HERE / "results" / "memory"
PEER = "sb3-contrib"
UNITS, ENVS = 64, 8

CELLS = {
    "LSTM": lambda rl, keras: keras.layers.LSTMCell(UNITS),
    "GRU": lambda rl, keras: keras.layers.GRUCell(UNITS),
    "none": lambda rl, keras: None,
}
STEPS = {1e-3: 200_000, 3e-4: 300_000}
ROWS = {
    f"{cell}-{rate}": {"cell": cell, "rate": rate, "steps": steps}
    for cell in CELLS
    for rate, steps in STEPS.items()
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="row")
    parser.add_argument("--peer", help="a Python with sb3-contrib")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--again", action="store_true", help="train ours anew")
    parser.add_argument("--report", action="store_true", help="train nothing")
    parser.set_defaults(settings=None)
    parser.add_argument("--run", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        print(json.dumps(train(**arguments.run)))
        return
    if not arguments.report:
        run_all(jobs(arguments), KEPT, arguments)
    write_between(TABLE, "memory", table())


def jobs(arguments):
    """Yields what is to be run: name, settings, side, seed and command."""
    for name in arguments.rows or ROWS:
        settings = ROWS[name]
        for seed in range(arguments.seeds):
            task = json.dumps({**settings, "seed": seed})
            ours = [sys.executable, __file__, "--run", task]
            yield name, settings, OURS, seed, ours
            if arguments.peer and settings["cell"] == "LSTM":
                script = str(HERE / "peer_contrib.py")
                theirs = [arguments.peer, script, peer_task(settings, seed)]
                yield name, settings, PEER, seed, theirs


def peer_task(settings, seed):
    """Returns RecurrentPPO's own settings, as `peer_contrib.py` takes them."""
    return json.dumps(
        {
            "case": "memory",
            "steps": settings["steps"],
            "seed": seed,
            "envs": ENVS,
            "horizon": 128,
            "passes": 10,
            "batch_size": 128,
            "learning_rate": settings["rate"],
            "gamma": 0.99,
            "gae_lambda": 0.95,
            "decays": False,
            "normalizes": False,
            "cell": UNITS,
            "shared": False,
            "episodes": EPISODES,
            "threads": 1,
        }
    )


def train(cell, rate, steps, seed):
    """Trains ours on one seed, and returns what is kept of it."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    import keras

    import keras_rl2 as rl
    from support.memory_envs import PositionsOnly

    hidden = {"wrappers": [PositionsOnly], "num_envs": ENVS}
    rollouts = rl.RolloutDataset("CartPole-v1", seed=seed, **hidden)
    agent = rl.PPO.for_env(
        rollouts.env, memory=CELLS[cell](rl, keras), seed=seed
    )
    agent.compile(keras.optimizers.Adam(rate))
    start = time.perf_counter()
    agent.fit(rollouts, total_steps=steps, verbose=0)
    seconds = time.perf_counter() - start
    result = agent.evaluate(
        "CartPole-v1", episodes=EPISODES, seed=seed + 1000, **hidden
    )
    return {
        "return": float(result["episode_return"]),
        "steps_per_second": agent.env_steps / seconds,
    }


def table():
    """Returns the table of what is kept, in Markdown."""
    lines = [
        "| Memory | Adam | Steps | Ours, by seed | RecurrentPPO, by seed |",
        "| --- | ---: | ---: | --- | --- |",
    ]
    for name, settings in ROWS.items():
        runs = Results.of(KEPT, name, settings).runs
        returns = [
            ", ".join(
                shown(run["return"])
                for _, run in sorted(runs.get(side, {}).items())
            )
            for side in (OURS, PEER)
        ]
        if any(returns):
            lines.append(
                f"| {settings['cell']} | {settings['rate']:g} "
                f"| {settings['steps'] // 1000}k | {returns[0]} | "
                f"{returns[1] or '-'} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
