"""Times collecting with workers, and says what a round of theirs costs.

    python benchmarks/workers.py sleeping     # 5 ms a step, 16 of them
    python benchmarks/workers.py halfcheetah  # HalfCheetah-v5, 2 workers
    python benchmarks/workers.py cost         # as in docs/scaling.md

The first two print steps per second of collecting alone (medians of alternate
runs, each in a fresh process) in one process, with Gymnasium's AsyncVectorEnv,
with `LocalWorkers` and with `RayWorkers` where Ray is installed; the third
measures what the parts of a round take, predicts from them how fast PPO is
with 1, 2 and 4 workers, measures that too, and goes on with more on paper.
"""

import argparse
import functools
import importlib.util
import json
import os
import pickle
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import gymnasium
import numpy as np

from benchmarks import peers
from support import sleeping_envs

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

HERE = Path(__file__).resolve()


def halfcheetah():
    """Makes a HalfCheetah-v5."""
    return gymnasium.make("HalfCheetah-v5")


CASES = {
    "sleeping": (sleeping_envs.cartpole, 16, 8, 32, 4),
    "halfcheetah": (halfcheetah, 4, 2, 256, 12),
}
"""Environment, how many, workers, horizon and rollouts that are timed."""


def sides(case):
    """Returns the ways to step the environments of a case, by name."""
    workers = CASES[case][2]
    names = ["one process", "AsyncVectorEnv", f"LocalWorkers({workers})"]
    if workers < CASES[case][1]:
        # As many processes as Gymnasium has: one for each environment.
        names.append(f"LocalWorkers({CASES[case][1]})")
    if importlib.util.find_spec("ray") is not None:
        names.append(f"RayWorkers({workers})")
    return names


def collecting(case, side):
    """Collects some rollouts in one way, and returns the steps per second."""
    import keras_rl2 as rl

    make, num_envs, _, horizon, rollouts = CASES[case]
    settings = {"horizon": horizon, "seed": 0}
    if side.endswith(")"):
        name, _, count = side.removesuffix(")").partition("(")
        kind = getattr(rl, name)
        data = rl.RolloutDataset(
            make, num_envs=num_envs, workers=kind(int(count)), **settings
        )
    else:
        vector = (
            gymnasium.vector.AsyncVectorEnv
            if side == "AsyncVectorEnv"
            else gymnasium.vector.SyncVectorEnv
        )
        env = vector(
            [make] * num_envs,
            autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP,
        )
        data = rl.RolloutDataset(env, **settings)
    agent = rl.PPO.for_env(data.env, seed=0)
    data.bind(agent)
    data.collect()
    began = time.perf_counter()
    for _ in range(rollouts):
        data.collect()
    seconds = time.perf_counter() - began
    data.close()
    return {"steps_per_second": rollouts * horizon * num_envs / seconds}


def compare(case, runs):
    """Prints the medians of all sides, and their ratios to one process."""
    commands = {
        side: [sys.executable, str(HERE), case, "--side", side]
        for side in sides(case)
    }
    results = peers.alternate(commands, runs)
    medians = {
        side: statistics.median(each["steps_per_second"] for each in found)
        for side, found in results.items()
    }
    for side, found in results.items():
        speeds = " ".join(f"{each['steps_per_second']:.0f}" for each in found)
        fast = medians[side]
        ratio = fast / medians["one process"]
        print(f"  {side:16} {fast:8.0f} steps/s {ratio:6.2f}x ({speeds})")


# What a round costs.

MODEL = {"num_envs": 8, "horizon": 32, "hidden": (64, 64)}
UPDATES = {"passes": 4, "batch_size": None}


def parts():
    """Measures what the parts of a round take, in seconds and bytes."""
    import keras_rl2 as rl

    num_envs, horizon = MODEL["num_envs"], MODEL["horizon"]
    data = rl.RolloutDataset(
        sleeping_envs.cartpole,
        num_envs=num_envs,
        horizon=horizon,
        workers=rl.LocalWorkers(1),
        seed=0,
    )
    agent = rl.PPO.for_env(data.env, hidden=MODEL["hidden"], seed=0)
    agent.fit(data, epochs=3, verbose=0)
    pool, actor = data.env.pool, data.source.actor
    noise, _ = agent.noise.draw(np.random.default_rng(0), (horizon, num_envs))
    trajectory = data.collect()
    arrays = [each for each in trajectory.arrays().values() if each is not None]

    def message():
        pool.call_all("describe")

    def weights_out():
        actor.sync()
        pickle.dumps(actor.weights)

    found = {
        "message_ms": 1e3 * timed(message, 200),
        "weights_out_ms": 1e3 * timed(weights_out, 200),
        "weights_bytes": sum(each.nbytes for each in actor.weights),
        "noise_bytes": noise.nbytes,
        "trajectory_bytes": sum(each.nbytes for each in arrays),
    }
    data.close()
    found["env_step_ms"] = 1e3 * stepping()
    found["act_ms"] = {b: 1e3 * acting(b) for b in (2, 4, 8)}
    found["copy_ms_per_mb"] = (
        1e3
        * timed(
            functools.partial(
                np.concatenate, [np.ones((1, 2**17))] * 2, axis=1
            ),
            50,
        )
        / 2.0
    )
    found["update_ms"] = 1e3 * updating()
    return found


def stepping():
    """Returns the seconds of one step of one environment."""
    env = sleeping_envs.cartpole()
    env.reset(seed=0)
    env.action_space.seed(0)

    def step():
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()

    return timed(step, 200)


def acting(batch):
    """Returns the seconds that a policy takes for so many observations."""
    import keras_rl2 as rl
    from keras_rl2.data import ActorSnapshot

    agent = rl.PPO.for_env("CartPole-v1", hidden=MODEL["hidden"], seed=0)
    actor = ActorSnapshot(agent.policy, batch)
    observation = np.zeros((batch, 4), np.float32)
    noise, _ = agent.noise.draw(np.random.default_rng(0), (batch,))
    return timed(lambda: actor(observation, noise), 2000)


def updating():
    """Returns the seconds of a round that are not spent collecting."""
    import keras_rl2 as rl

    data = rl.RolloutDataset(
        "CartPole-v1",
        num_envs=MODEL["num_envs"],
        horizon=MODEL["horizon"],
        **UPDATES,
        rounds_per_epoch=20,
        seed=0,
    )
    agent = rl.PPO.for_env(data.env, hidden=MODEL["hidden"], seed=0)
    agent.fit(data, epochs=2, verbose=0)
    spent = 0.0
    collect = data.collect

    def clocked():
        nonlocal spent
        began = time.perf_counter()
        trajectory = collect()
        spent += time.perf_counter() - began
        return trajectory

    data.collect = clocked
    began = time.perf_counter()
    agent.fit(data, epochs=5, verbose=0)
    return (time.perf_counter() - began - spent) / 100


def timed(function, times):
    """Returns the median seconds of a call."""
    function()
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        function()
        spent.append(time.perf_counter() - began)
    return statistics.median(spent)


def predicted(found, workers):
    """Returns the seconds of a round, from those of its parts.

    One worker steps its environments one after another.
    """
    each = MODEL["num_envs"] // workers
    act = found["act_ms"][str(each)] / 1e3
    step = found["env_step_ms"] / 1e3
    collecting = MODEL["horizon"] * (each * step + act)
    out = found["weights_out_ms"] + workers * found["message_ms"] / 2
    back = workers * found["message_ms"] / 2
    back += found["trajectory_bytes"] / 2**20 * found["copy_ms_per_mb"]
    return collecting + (out + back + found["update_ms"]) / 1e3


def measured(workers):
    """Returns the seconds of a round of PPO with so many workers."""
    import keras_rl2 as rl

    data = rl.RolloutDataset(
        sleeping_envs.cartpole,
        num_envs=MODEL["num_envs"],
        horizon=MODEL["horizon"],
        **UPDATES,
        workers=rl.LocalWorkers(workers),
        seed=0,
    )
    agent = rl.PPO.for_env(data.env, hidden=MODEL["hidden"], seed=0)
    agent.fit(data, epochs=2, verbose=0)
    began = time.perf_counter()
    agent.fit(data, epochs=6, verbose=0)
    seconds = (time.perf_counter() - began) / 6
    data.close()
    return {"seconds": seconds}


# On paper: what one environment's step takes, the bytes of its observation,
# those of the weights, and the milliseconds that a step costs the learner.
PAPER = {
    "simulator of 5 ms": (5e-3, 17 * 4, 40e3, 0.02e-3),
    "Atari": (0.35e-3, 4 * 84 * 84, 6.8e6, 0.25e-3),
}
NETWORK = 1.25e9
"""Bytes per second that a machine receives: 10 Gbit/s."""


def on_paper(workers, task, envs=8, horizon=128):
    """Returns steps per second, and what bounds them."""
    step, observation, weights, learn = PAPER[task]
    steps = workers * envs * horizon
    spent = {
        "workers": envs * horizon * step,
        "learner": steps * learn,
        "network in": steps * (observation + 16) / NETWORK,
        "network out": workers * weights / NETWORK,
    }
    # Workers go on meanwhile (APPO): the longest part is what a round takes.
    bound = max(spent, key=lambda part: spent[part])
    return steps / spent[bound], bound, steps / sum(spent.values())


def cost(runs):
    """Prints the model, and the predictions beside measurements."""
    command = [sys.executable, str(HERE), "cost", "--side"]
    found = peers.run([*command, "parts"])
    print(json.dumps(found, indent=2))
    for workers in (1, 2, 4):
        times = [
            peers.run([*command, str(workers)])["seconds"] for _ in range(runs)
        ]
        expected = predicted(found, workers)
        print(
            f"  {workers} workers: predicted {1e3 * expected:.0f} ms a round, "
            f"measured {1e3 * statistics.median(times):.0f} "
            f"({' '.join(f'{1e3 * each:.0f}' for each in times)})"
        )
    for task in PAPER:
        for workers in (10, 100, 1000):
            fast, bound, slow = on_paper(workers, task)
            print(
                f"  {task}, {workers} workers of 8: {fast:.0f} steps/s with "
                f"APPO, bound by {bound}; {slow:.0f} with PPO"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=[*CASES, "cost"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side is None:
        if arguments.case == "cost":
            cost(arguments.runs)
        else:
            compare(arguments.case, arguments.runs)
        return
    if arguments.case != "cost":
        print(json.dumps(collecting(arguments.case, arguments.side)))
    elif arguments.side == "parts":
        print(json.dumps(parts()))
    else:
        print(json.dumps(measured(int(arguments.side))))


if __name__ == "__main__":
    main()
