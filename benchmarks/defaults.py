"""Trains with nothing but an environment's id, beside Stable-Baselines3's own.

    python benchmarks/defaults.py --peer VENV/bin/python
    python benchmarks/defaults.py PPO-CartPole-v1 DQN-CartPole-v1
    python benchmarks/defaults.py --curves --peer VENV/bin/python
    python benchmarks/defaults.py --report

Ours is `Agent.for_env(id, seed=seed)` with `RolloutDataset(id, seed=seed)` or
`ReplayDataset(id, seed=seed)`; the peer's is its constructor with `"MlpPolicy"`
and the id. Both take as many steps, in one environment, and are judged by 20
greedy episodes, more in most tasks of `chance_tasks.py`. What has been run is
kept in `results/defaults`, a file for each row, and is not run again: delete a
file, or give `--again`, to have ours trained anew. The table of
docs/defaults.md is written when all is done.

APPO needs workers, and has two, with an environment each. A peer that
Stable-Baselines3 has not got is sb3-contrib's.

Runs keep the curve of their training, see `episodes.py`, which
`agent_curves.py` draws for the page of each agent. Those of `CURVES` that were
made before there were curves are made anew by `--curves`, on both sides.

Defaults were chosen on the tasks of `CHOSEN_ON`, and are shown on the others:

    python benchmarks/defaults.py PPO-CartPole-v1 --try
        '{"dataset": {"passes": 4}, "learning_rate": 0.001}'

prints the returns of ours with other settings, and keeps nothing.
"""

import argparse
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks import chance_tasks
from benchmarks import episodes
from benchmarks import peers
from benchmarks.marked import write_between
from benchmarks.peer_sb3 import peak_rss_mib
from benchmarks.results import Results

HERE = Path(__file__).resolve().parent
KEPT = HERE / "results" / "defaults"
TABLE = HERE.parent / "docs" / "defaults.md"
OURS, PEER = "keras_rl2", "stable-baselines3"
EPISODES = 20

CHOSEN_ON = (
    "CartPole-v1",
    "LunarLander-v3",
    "Pendulum-v1",
    "Hopper-v5",
    "MountainCarContinuous-v0",
    *chance_tasks.CHOSEN_ON,
)
SHOWN_ON = (
    "Acrobot-v1",
    "MountainCar-v0",
    "FrozenLake-v1",
    "LunarLanderContinuous-v3",
    "HalfCheetah-v5",
    "InvertedPendulum-v5",
    *chance_tasks.SHOWN_ON,
)
_DISCRETE = {
    "CartPole-v1": 50_000,
    "LunarLander-v3": 100_000,
    "Acrobot-v1": 50_000,
    "MountainCar-v0": 60_000,
    "FrozenLake-v1": 50_000,
}
_CHANCE = {env: steps for env, (steps, _) in chance_tasks.TASKS.items()}
_CONTINUOUS = {
    "Pendulum-v1": 8_000,
    "Hopper-v5": 10_000,
    "MountainCarContinuous-v0": 20_000,
    "LunarLanderContinuous-v3": 10_000,
    "HalfCheetah-v5": 10_000,
    "InvertedPendulum-v5": 5_000,
}
_PPO = {
    "CartPole-v1": 60_000,
    "LunarLander-v3": 200_000,
    "Pendulum-v1": 100_000,
    "Hopper-v5": 100_000,
    "MountainCarContinuous-v0": 50_000,
    "Acrobot-v1": 60_000,
    "MountainCar-v0": 60_000,
    "FrozenLake-v1": 60_000,
    "LunarLanderContinuous-v3": 100_000,
    "HalfCheetah-v5": 60_000,
}
_A2C = {
    **dict.fromkeys(_PPO, 60_000),
    "CartPole-v1": 100_000,
    "LunarLander-v3": 100_000,
    "LunarLanderContinuous-v3": 100_000,
}
STEPS = {
    "PPO": _PPO,
    "A2C": _A2C,
    "APPO": {"CartPole-v1": 60_000, "Acrobot-v1": 60_000},
    "REINFORCE": {"CartPole-v1": 100_000, "Acrobot-v1": 100_000},
    "PQN": {"CartPole-v1": 100_000, "Acrobot-v1": 500_000},
    "DQN": _DISCRETE | _CHANCE,
    "SAC": _CONTINUOUS,
    "TD3": _CONTINUOUS,
    "DDPG": _CONTINUOUS,
    "CrossQ": {"Pendulum-v1": 5_000, "InvertedPendulum-v5": 5_000},
}
#: Algorithms that neither Stable-Baselines3 nor sb3-contrib has got.
WITHOUT_PEER = ("APPO", "REINFORCE", "PQN")
OF_CONTRIB = ("CrossQ",)
#: How many, with an environment each, where it is not one without them.
WORKERS = {"APPO": 2}
#: Tasks of which each algorithm has a picture.
CURVES = {
    **dict.fromkeys(
        ("PPO", "A2C", "APPO", "REINFORCE", "PQN", "DQN"),
        ("CartPole-v1", "Acrobot-v1"),
    ),
    **dict.fromkeys(
        ("SAC", "TD3", "DDPG", "CrossQ"),
        ("Pendulum-v1", "InvertedPendulum-v5"),
    ),
}
ROWS = {
    f"{algorithm}-{env}": (algorithm, env, steps)
    for algorithm, tasks in STEPS.items()
    for env, steps in tasks.items()
}


def main():
    arguments = parse()
    if arguments.run:
        print(json.dumps(train(*ROWS[arguments.run], arguments)))
        return
    if not arguments.report:
        run_all(jobs(arguments), KEPT, arguments)
    if not arguments.settings:
        write_between(TABLE, "defaults", table())


def parse():
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="row")
    parser.add_argument("--peer", help="a Python with stable-baselines3")
    parser.add_argument("--side", choices=(OURS, PEER), help="only this one")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--again", action="store_true", help="train ours anew")
    parser.add_argument(
        "--curves", action="store_true", help="make runs of CURVES have one"
    )
    parser.add_argument("--report", action="store_true", help="train nothing")
    parser.add_argument("--try", dest="settings", default="", metavar="JSON")
    parser.add_argument("--run", choices=sorted(ROWS), help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def sides(name, arguments):
    """Returns which sides of a row can be run, and are wanted."""
    algorithm, _, _ = ROWS[name]
    there = [OURS]
    if arguments.peer and algorithm not in WITHOUT_PEER:
        there.append(PEER)
    if arguments.settings:
        there = [OURS]
    return [each for each in there if arguments.side in (None, each)]


def settings_of(name):
    """Returns the settings of a row, of which others make other results."""
    return dict(
        zip(("algorithm", "environment", "steps"), ROWS[name], strict=True)
    )


def jobs(arguments):
    """Yields what is to be run: name, settings, side, seed and command."""
    rows = [f"{each}-{env}" for each, tasks in CURVES.items() for env in tasks]
    for name in arguments.rows or (rows if arguments.curves else ROWS):
        settings = settings_of(name)
        for seed in range(arguments.seeds):
            for side in sides(name, arguments):
                run = command(name, side, seed, arguments)
                yield name, settings, side, seed, run


def run_all(jobs, folder, arguments):
    """Runs what has not been run, several at a time, and keeps it.

    Args:
        jobs: iterable of name, settings, side, seed and command.
        folder: Path. Where it is kept.
        arguments: Of the command line: `jobs` at a time; with `settings` all
            is run and nothing kept, with `again` ours is run anew, with
            `curves` what has none.
    """
    writing = threading.Lock()

    def run_one(name, settings, side, seed, command):
        with writing:
            kept = Results.of(folder, name, settings)
        again = arguments.settings or (arguments.again and side == OURS)
        if kept.has(side, seed) and not again:
            has_curve = "curve" in kept.runs[side][str(seed)]
            if has_curve or not arguments.curves:
                return
        run = peers.run(command)
        print(name, seed, side, json.dumps(run), flush=True)
        if arguments.settings:
            return
        with writing:
            kept = Results.of(folder, name, settings)
            kept.add(side, seed, run)
            kept.write(folder)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        # A failure is raised by what reads the results.
        for done in [pool.submit(run_one, *job) for job in jobs]:
            done.result()


def command(name, side, seed, arguments):
    """Returns the command that trains one side of a row on one seed."""
    algorithm, env, steps = ROWS[name]
    if side == PEER:
        return peers.peer_command(
            arguments.peer,
            algorithm,
            chance_tasks.full_id(env),
            {},
            "curve",
            library="contrib" if algorithm in OF_CONTRIB else "sb3",
            envs=1,
            steps=steps,
            seed=seed,
            evaluate=episodes_of(env),
            threads=1,
        )
    ours = [sys.executable, __file__, "--run", name, "--seed", str(seed)]
    if arguments.settings:
        ours += ["--try", arguments.settings]
    return ours


def episodes_of(env):
    """Returns the number of greedy episodes by which a task is judged."""
    return chance_tasks.TASKS.get(env, (None, EPISODES))[1]


def train(algorithm, env, steps, arguments):
    """Trains ours on one seed, and returns what is kept of it."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    import keras

    import keras_rl2 as rl

    seed = arguments.seed
    tried = json.loads(arguments.settings or "{}")
    agent = getattr(rl, algorithm).for_env(
        env, seed=seed, **tried.get("agent", {})
    )
    if "optimizer" in tried:
        agent.compile(keras.optimizers.get(tried["optimizer"]))
    kind = rl.RolloutDataset if agent.on_policy else rl.ReplayDataset
    steps = tried.get("steps", steps)
    options = {"seed": seed, **tried.get("dataset", {})}
    if algorithm in WORKERS:
        options["num_envs"] = WORKERS[algorithm]
        options["workers"] = rl.LocalWorkers(WORKERS[algorithm])
    data = kind(env, **options)
    begin = keras.callbacks.LambdaCallback(
        on_train_begin=lambda logs: episodes.count_all(data)
    )
    start = time.perf_counter()
    agent.fit(data, total_steps=steps, callbacks=[begin], verbose=0)
    seconds = time.perf_counter() - start
    curve = episodes.curve_of(episodes.of_dataset(data), steps)
    if algorithm in WORKERS:
        data.close()
    result = agent.evaluate(env, episodes=episodes_of(env), seed=seed + 1000)
    return {
        "return": float(result["episode_return"]),
        "steps_per_second": agent.env_steps / seconds,
        "peak_rss_mib": peak_rss_mib(),
        "curve": curve,
    }


def table():
    """Returns the table of what is kept, in Markdown."""
    from keras_rl2.cli.plot import interquartile_mean

    lines = [
        "| Algorithm | Task | Steps | Ours | Seeds | Peer's | Seeds |",
        "| --- | --- | ---: | ---: | --- | ---: | --- |",
    ]
    for name, (algorithm, env, steps) in ROWS.items():
        kept = Results.of(KEPT, name, settings_of(name))
        if not kept.runs:
            continue
        cells = []
        for side in (OURS, PEER):
            runs = kept.runs.get(side, {})
            returns = [run["return"] for _, run in sorted(runs.items())]
            mean = shown(interquartile_mean(returns)) if returns else "-"
            cells += [mean, ", ".join(map(shown, returns))]
        task = f"{env} *" if env in CHOSEN_ON else env
        lines.append(
            f"| {algorithm} | {task} | {steps // 1000}k | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def shown(value):
    """Returns a return as the table has it: whole, or of small ones parts."""
    return (
        f"{value:.0f}" if abs(value) >= 10 else f"{round(value, 2) + 0.0:.2f}"
    )


if __name__ == "__main__":
    main()
