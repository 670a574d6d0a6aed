"""Times PPO with worker processes beside RLlib's, in turn, on Linux.

    python benchmarks/workers_vs_rllib.py --peer VENV/bin/python

prints, of CartPole-v1 with two workers and the same settings on both sides,
the steps per second, the most memory of all processes together, and the
return of greedy episodes: medians of alternate runs. `VENV` is a virtual
environment with RLlib (`pip install "ray[rllib]" torch`). `--keep` writes the
runs to `benchmarks/results/workers`.

The same settings, but for what RLlib does not offer or does in its own way:
its layers begin as torch's do, advantages are normalised over the rollout and
not the minibatch, and a row is added for each episode of a rollout, which
makes 17 or 18 minibatches of what are 16 here.
"""

import argparse
import functools
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks import peers
from benchmarks import results
from benchmarks.process_tree import PeakMemory

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

FOLDER = Path(__file__).resolve().parent / "results" / "workers"
PEER = "rllib"
KINDS = {"local": "LocalWorkers", "ray": "RayWorkers", "none": None}
TASK = {
    "env": "CartPole-v1",
    "workers": 2,
    "envs": 8,
    "horizon": 128,
    "passes": 4,
    "batch_size": 256,
    "learning_rate": 3e-4,
    "epsilon": 1e-8,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "clip_ratio": 0.2,
    "value_coefficient": 0.5,
    "max_gradient_norm": 0.5,
    "hidden": [64, 64],
    "activation": "tanh",
    "episodes": 20,
    # Rounds: before the clock starts, timed, and after it; memory is measured
    # in the first and the last ones.
    "warm_up": 5,
    "rounds": 60,
    "more": 10,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python with ray[rllib] and torch")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--workers", nargs="+", choices=KINDS, default=["local"], help="ours"
    )
    # With two on two busy cores each waits for the other to get one: updates
    # took 1.0 and 5.5 s a round, where one takes 0.1.
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument(
        "--vectorization",
        choices=("sync", "vector_entry_point"),
        default="sync",
        help="of each worker's environments: one by one, or all in NumPy",
    )
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--ours", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ours:
        kind, task = arguments.ours
        print(json.dumps(ours(kind, json.loads(task))))
        return
    compare(arguments)


def compare(arguments):
    """Runs all sides in turn, a seed for each turn, and prints medians."""
    runs = {}
    for seed in range(arguments.runs):
        task = {**settings(arguments), "seed": seed}
        for side, command in commands(arguments, json.dumps(task)).items():
            run = peers.run(command)
            runs.setdefault(side, []).append(run)
            print(f"{side}, seed {seed}: {json.dumps(run)}", flush=True)
    print(f"{TASK['env']}, medians of {arguments.runs} runs")
    for side, each in runs.items():
        print_side(side, each)
    if arguments.peer:
        print_ratios(runs)
    if arguments.keep:
        keep(runs, settings(arguments))


def settings(arguments):
    """Returns what all runs share."""
    return {
        **TASK,
        "threads": arguments.threads,
        "vectorization": arguments.vectorization,
    }


def commands(arguments, task):
    """Returns the command of each side; ours first."""
    result = {
        f"keras_rl2 {kind}": [sys.executable, __file__, "--ours", kind, task]
        for kind in arguments.workers
    }
    if arguments.peer:
        script = str(Path(__file__).with_name("peer_rllib.py"))
        result[PEER] = [arguments.peer, script, task]
    return result


def ours(kind, task):
    """Trains, and returns what is compared."""
    import keras

    import keras_rl2 as rl

    memory = PeakMemory()
    with memory:
        name = KINDS[kind]
        vectorized = task["vectorization"] != "sync"
        rollouts = rl.RolloutDataset(
            make_env(name, task),
            horizon=task["horizon"],
            passes=task["passes"],
            batch_size=task["batch_size"],
            scale_rewards=False,
            num_envs=task["envs"] if name or vectorized else 1,
            workers=name and getattr(rl, name)(task["workers"]),
            seed=task["seed"],
        )
        agent = rl.PPO.for_env(
            rollouts.env,
            hidden=task["hidden"],
            activation=task["activation"],
            gamma=task["gamma"],
            gae_lambda=task["gae_lambda"],
            clip_ratio=task["clip_ratio"],
            value_coefficient=task["value_coefficient"],
            max_gradient_norm=task["max_gradient_norm"],
            seed=task["seed"],
        )
        agent.compile(
            keras.optimizers.Adam(
                task["learning_rate"], epsilon=task["epsilon"]
            )
        )
        agent.fit(rollouts, epochs=task["warm_up"], verbose=0)
    spent = {"collecting": 0.0}
    for name in ("collect", "prepare"):
        peers.clock(rollouts, name, "collecting", spent)
    before = agent.env_steps
    start = time.perf_counter()
    agent.fit(rollouts, epochs=task["rounds"], verbose=0)
    seconds = time.perf_counter() - start
    steps = agent.env_steps - before
    collecting = spent["collecting"]
    with memory:
        agent.fit(rollouts, epochs=task["more"], verbose=0)
    rollouts.close()
    played = agent.evaluate(
        task["env"], episodes=task["episodes"], seed=task["seed"] + 1000
    )
    each = 1e3 / task["rounds"]
    return {
        "steps_per_second": steps / seconds,
        "steps": steps,
        "collecting_ms": each * collecting,
        "update_ms": each * (seconds - collecting),
        **memory.result(),
        "return": played["episode_return"],
    }


def make_env(workers, task):
    """Returns what a dataset is given.

    A function rather than the id, which stands for an environment in NumPy
    that steps all of them at once.
    """
    import gymnasium as gym

    if task["vectorization"] != "sync":
        return task["env"]
    make = functools.partial(gym.make, task["env"])
    if workers:
        return make
    # As workers have them: from the same seed it is the same training.
    return gym.vector.SyncVectorEnv(
        [make] * task["envs"], autoreset_mode=gym.vector.AutoresetMode.SAME_STEP
    )


def print_side(side, runs):
    """Prints the medians of one side, and what they are medians of."""

    def of(key, digits=0):
        numbers = [run[key] for run in runs]
        each = ", ".join(f"{number:.{digits}f}" for number in numbers)
        return f"{statistics.median(numbers):.{digits}f} ({each})"

    print(f"  {side}")
    print(f"    steps/s               {of('steps_per_second')}")
    print(f"    ms of a round         {of('collecting_ms')} collecting")
    print(f"                          {of('update_ms')} updating")
    print(f"    MiB, shared once      {of('peak_pss_mib')}")
    print(f"    MiB, sum of resident  {of('peak_rss_mib')}")
    print(f"    processes             {of('processes')}")
    print(f"    greedy return         {of('return', 1)}")


def print_ratios(runs):
    """Prints how each of ours stands to the peer, run by run."""
    for side, each in runs.items():
        if side == PEER:
            continue
        for key in ("steps_per_second", "peak_pss_mib"):
            ratios = [
                own[key] / other[key]
                for own, other in zip(each, runs[PEER], strict=True)
            ]
            print(
                f"  {key}: {side} to {PEER} {statistics.median(ratios):.2f} "
                f"({', '.join(f'{ratio:.2f}' for ratio in ratios)})"
            )


def keep(runs, settings):
    """Writes the runs to a file, in the place of those of another time."""
    name = f"rllib-PPO-{settings['env']}-{settings['vectorization']}"
    kept = results.Results(name, settings, {})
    for side, each in runs.items():
        for seed, run in enumerate(each):
            kept.add(side, seed, run)
    kept.write(FOLDER)


if __name__ == "__main__":
    main()
