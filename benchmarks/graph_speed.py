"""Times whole trainings in the graph beside PureJaxRL and gymnax, in turn.

    python benchmarks/graph_speed.py \\
        --peer VENV/bin/python --purejaxrl CHECKOUT

prints steps per second after compilation (medians and ranges of alternate
runs), the seconds of compilation, returns, and the ratios. `peer_purejaxrl.py`
tells what VENV and CHECKOUT are. Settings are PureJaxRL's, the decay of the
learning rate included; MinAtar's actions do not stick, as in gymnax. Each run
has the seed of its number, on both sides. PureJaxRL's epsilon of Adam, 1e-5,
is added after the correction of the bias and Keras' before it, where it is up
to 30 times as large in the first updates: 1e-6 stands for it here. Trainings
of many seeds are short: longer ones of PureJaxRL hang with jax 0.10.2 on two
cores.

    python benchmarks/graph_speed.py --solve \\
        --sb3 VENV/bin/python --peer VENV/bin/python --purejaxrl CHECKOUT

prints the seconds from the start of a process to a greedy return of 475 on
CartPole, in the graph, on Gymnasium's environments, of Stable-Baselines3 with
the same settings and the same attempts, and of PureJaxRL with a number of steps
that brings its returns there, without an evaluation.

    python benchmarks/graph_speed.py --processes 32

prints the seconds of 32 seeds at once, and of a process with one of them, with
the starts of the processes and the compilation; then of 32 learning rates.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks import peers

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

PPO = {
    "case": "ppo",
    "env": "CartPole-v1",
    "minibatches": 4,
    "learning_rate": 2.5e-4,
    "activation": "tanh",
}
CASES = {
    "PPO, CartPole, 64 environments": {**PPO, "envs": 64, "steps": 1_000_000},
    "PPO, CartPole, 2048 environments": {
        **PPO,
        "envs": 2048,
        "steps": 5_242_880,
    },
    "PPO, MinAtar Breakout, 64 environments": {
        **PPO,
        "case": "ppo_minatar",
        "env": "MinAtar/Breakout-v1",
        "envs": 64,
        "steps": 500_000,
        "minibatches": 8,
        "learning_rate": 5e-3,
        "activation": "relu",
        "env_kwargs": {"sticky_action_prob": 0.0},
    },
    "Many seeds, PPO CartPole, 16 of 4 environments": {
        **PPO,
        "case": "many",
        "envs": 4,
        "seeds": 16,
        "steps": 100_000,
    },
    "Many seeds, PPO CartPole, 8 of 64 environments": {
        **PPO,
        "case": "many",
        "envs": 64,
        "seeds": 8,
        "steps": 131_072,
    },
    "DQN, CartPole, 10 environments": {
        "case": "dqn",
        "env": "CartPole-v1",
        "envs": 10,
        "steps": 500_000,
    },
    "Stepping, CartPole, 1024 environments": {
        "case": "stepping",
        "env": "CartPole-v1",
        "envs": 1024,
        "steps": 10_000_000,
    },
}
#: Of `--processes`.
MANY = {**PPO, "envs": 4, "steps": 100_000}
#: Of `--solve`.
SOLVED = {**PPO, "envs": 16, "learning_rate": 2.5e-3}
# PureJaxRL's number of steps is part of its program. Of 65,536, 98,304, 131,072
# and these, they are the fewest that brought the mean of three seeds to 475.
PUREJAXRL_STEPS = 196_608
HORIZON, PASSES = 128, 4


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python with PureJaxRL's packages")
    parser.add_argument("--purejaxrl", metavar="CHECKOUT")
    parser.add_argument("--sb3", help="a Python with stable-baselines3")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="cases that begin so")
    parser.add_argument("--solve", action="store_true")
    parser.add_argument("--processes", type=int, metavar="SEEDS")
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--at-once", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--sweep", default="seeds", help=argparse.SUPPRESS)
    parser.add_argument("--to-475", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.to_475:
        print(json.dumps(solve(arguments.to_475)))
    elif arguments.ours:
        task = CASES[arguments.ours]
        print(json.dumps(RUNS[task["case"]](task, arguments.seed)))
    elif arguments.at_once:
        train_many(
            {**MANY, "seeds": arguments.at_once, "sweep": arguments.sweep}, 0
        )
    elif arguments.processes:
        print_processes(arguments.processes, arguments.runs)
    elif arguments.solve:
        print_solved(arguments)
    else:
        for case in CASES:
            if case.startswith(arguments.only):
                compare(case, arguments)


def compare(case, arguments):
    """Runs both sides in turn and prints medians."""
    results = {}
    for seed in range(arguments.runs):
        own = [sys.executable, __file__, "--ours", case]
        commands = {"keras_rl2": own}
        if arguments.peer:
            commands["PureJaxRL"] = command(CASES[case], arguments)
        for each in commands.values():
            each += ["--seed", str(seed)]
        for name, found in peers.alternate(commands, 1).items():
            results.setdefault(name, []).extend(found)
    print(f"{case}: medians of {arguments.runs} runs")
    peers.print_speeds(results)
    for name, each in results.items():
        for figure in ("compile_seconds", "return"):
            values = ", ".join(f"{one[figure]:.1f}" for one in each)
            print(f"  {name:18} {figure.replace('_', ' ')}: {values}")


def command(task, arguments):
    """Returns the command that runs the peer once."""
    names = {"MinAtar/Breakout-v1": "Breakout-MinAtar"}
    env = names.get(task["env"], task["env"])
    peer = str(peers.HERE / "peer_purejaxrl.py")
    options = {
        name: task[name] for name in ("envs", "steps", "seeds") if name in task
    } | {"runs": 1}
    if task["case"] != "stepping":
        options["purejaxrl"] = arguments.purejaxrl
    made = [arguments.peer, peer, task["case"], env]
    for name, value in options.items():
        made += [f"--{name}", str(value)]
    return made


def make(env, task, steps, seed=0):
    """Returns an agent and its rollouts, with PureJaxRL's settings."""
    import keras

    import keras_rl2 as rl

    size = task["envs"] * HORIZON
    rounds = steps // size
    rollouts = rl.RolloutDataset(
        env,
        horizon=HORIZON,
        passes=PASSES,
        batch_size=size // task["minibatches"],
        scale_rewards=False,
        # 16 rounds of 16 updates are a call.
        rounds_per_epoch=16 if task["case"] == "many" else max(rounds // 10, 1),
        num_envs=task["envs"] if isinstance(env, str) else 1,
        seed=seed,
    )
    space = rollouts.env.observation_space

    def network(outputs, gain):
        """Returns the network of PureJaxRL, which flattens pictures."""
        orthogonal = keras.initializers.Orthogonal
        layers = [keras.Input(space.shape), keras.layers.Flatten()]
        layers += [
            keras.layers.Dense(
                64,
                task["activation"],
                kernel_initializer=orthogonal(2.0**0.5, seed=3 * seed + each),
            )
            for each in (0, 1)
        ]
        last = keras.layers.Dense(
            outputs, kernel_initializer=orthogonal(gain, seed=3 * seed + 2)
        )
        return keras.Sequential([*layers, last])

    agent = rl.PPO(
        network(int(rollouts.env.action_space.n), 0.01),
        network(1, 1.0),
        entropy_coefficient=0.01,
        # PureJaxRL's 0.5 of half the squared error.
        value_coefficient=0.25,
        value_clip_range=0.2,
        seed=seed,
    )
    updates = rounds * PASSES * task["minibatches"]
    rate = keras.optimizers.schedules.PolynomialDecay(
        task["learning_rate"], updates, 0.0
    )
    agent.compile(keras.optimizers.Adam(rate, epsilon=1e-6))
    return agent, rollouts


def make_env(task):
    """Returns the environments of a case."""
    import keras_rl2 as rl

    return rl.envs.GraphVectorEnv(
        task["env"], task["envs"], env_kwargs=task.get("env_kwargs")
    )


def make_dqn(task, seed):
    """Returns an agent and its replay, with PureJaxRL's settings.

    An update follows each step of the environments.
    """
    import keras

    import keras_rl2 as rl

    replay = rl.ReplayDataset(
        make_env(task),
        capacity=10_000,
        batch_size=128,
        steps_per_round=task["envs"],
        updates_per_round=1,
        warm_up=10_000,
        # 256 of them are a call.
        rounds_per_epoch=2048,
        seed=seed,
    )
    layers = [
        keras.layers.Dense(
            units,
            activation,
            kernel_initializer=keras.initializers.LecunNormal(3 * seed + each),
        )
        for each, (units, activation) in enumerate(
            [(120, "relu"), (84, "relu"), (2, None)]
        )
    ]
    agent = rl.DQN(
        keras.Sequential([keras.Input((4,)), *layers]),
        double=False,
        loss="mse",
        epsilon=keras.optimizers.schedules.PolynomialDecay(1.0, 250_000, 0.05),
        max_gradient_norm=None,
        tau=1.0,
        # 500 steps of 10 environments.
        target_every=50,
        seed=seed,
    )
    agent.compile(keras.optimizers.Adam(2.5e-4))
    return agent, replay


def train(task, seed):
    """Trains in the graph, and returns the figures."""
    if task["case"] == "dqn":
        agent, rollouts = make_dqn(task, seed)
    else:
        agent, rollouts = make(make_env(task), task, task["steps"], seed)
    start = time.perf_counter()
    # The rounds of a call depend on those of an epoch.
    agent.fit(rollouts, epochs=1, verbose=0)
    first = time.perf_counter() - start
    begun = agent.env_steps
    start = time.perf_counter()
    logs = agent.fit(rollouts, total_steps=task["steps"] - begun, verbose=0)
    seconds = time.perf_counter() - start
    speed = (agent.env_steps - begun) / seconds
    return {
        "steps_per_second": speed,
        "compile_seconds": first - begun / speed,
        "return": logs.history["episode_return"][-1],
    }


def train_many(task, seed):
    """Trains many seeds, rates or coefficients, and returns the figures."""
    import keras

    import keras_rl2 as rl

    rollouts, agents, begun = {}, [], []

    def make_agent(number):
        agent, rollouts[number] = make(
            make_env(task), task, task["steps"], seed + number
        )
        if task.get("sweep") == "rates":
            rate = 1e-4 * 1.1**number
            agent.compile(keras.optimizers.Adam(rate, epsilon=1e-6))
        if task.get("sweep") == "coefficients":
            agent.gamma = 0.95 + 0.001 * number
            agent.clip_ratio = 0.1 + 0.01 * number
            agent.entropy_coefficient = 0.001 * number
        agents.append(agent)
        return agent

    def note(*_):
        # The first of all has been compiled.
        if not begun:
            begun[:] = time.perf_counter(), taken()

    def taken():
        return sum(agent.env_steps for agent in agents)

    start = time.perf_counter()
    trained = rl.train_seeds(
        make_agent,
        rollouts.pop,
        range(task["seeds"]),
        total_steps=task["steps"],
        make_callbacks=lambda _: [
            keras.callbacks.LambdaCallback(on_epoch_end=note)
        ],
    )
    then, before = begun
    speed = (taken() - before) / (time.perf_counter() - then)
    return {
        "steps_per_second": speed,
        "compile_seconds": then - start - before / speed,
        "return": float(trained.history["episode_return"][:, -1].mean()),
    }


def print_processes(seeds, runs):
    """Prints the seconds of many seeds at once, and of a process with one."""
    for sweep in ("seeds", "rates", "coefficients"):
        seconds = {seeds: [], 1: []}
        for _ in range(runs):
            for number, found in seconds.items():
                start = time.perf_counter()
                subprocess.run(
                    [
                        sys.executable,
                        __file__,
                        "--at-once",
                        str(number),
                        *("--sweep", sweep),
                    ],
                    capture_output=True,
                    check=True,
                )
                found.append(time.perf_counter() - start)
        print(sweep)
        for number, found in seconds.items():
            shown = ", ".join(f"{each:.1f}" for each in found)
            median = statistics.median(found)
            print(f"  {number} at once: {median:.1f} s ({shown})")
        ratios = [
            many / (seeds * one)
            for many, one in zip(*seconds.values(), strict=True)
        ]
        shown = ", ".join(f"{each:.2f}" for each in ratios)
        print(
            f"  ratio to {seeds} processes one after another "
            f"{statistics.median(ratios):.2f} ({shown})"
        )


def step(task, seed):
    """Steps environments with random actions, and returns the figures."""
    import tensorflow as tf

    from keras_rl2.envs.graph import random_numbers

    env = make_env(task)
    count = task["steps"] // task["envs"]

    @tf.function(jit_compile=True, autograph=False)
    def run(seed):
        def body(t, episodes, ended):
            action = random_numbers.integers(
                random_numbers.fold_in(seed, t), (env.num_envs,), 0, 2
            )
            episodes, made = env.advance(episodes, action)
            over = tf.cast(made.terminated | made.truncated, "int32")
            return t + 1, episodes, ended + tf.reduce_sum(over)

        _, episodes, ended = tf.while_loop(
            lambda t, *_: t < count, body, (0, env.read(), 0)
        )
        env.write(episodes)
        return ended

    seed = tf.constant([seed, 1], "uint32")
    start = time.perf_counter()
    run(seed).numpy()
    first = time.perf_counter() - start
    start = time.perf_counter()
    ended = run(seed).numpy()
    seconds = time.perf_counter() - start
    return {
        "steps_per_second": count * task["envs"] / seconds,
        "compile_seconds": first - seconds,
        "return": count * task["envs"] / ended,
    }


RUNS = {
    "dqn": train,
    "ppo": train,
    "ppo_minatar": train,
    "many": train_many,
    "stepping": step,
}


def solve(kind):
    """Trains until the greedy return is 475, and returns the seconds."""
    import keras

    import keras_rl2 as rl

    task, env = SOLVED, SOLVED["env"]
    if kind == "graph":
        env = rl.envs.GraphVectorEnv(env, num_envs=task["envs"])
    agent, rollouts = make(env, task, 500_000)
    agent.compile(keras.optimizers.Adam(task["learning_rate"], epsilon=1e-5))
    start = time.perf_counter()
    agent.fit(rollouts, total_steps=1, verbose=0)
    compiled = time.perf_counter() - start
    start = time.perf_counter()
    found = 0.0
    while found < 475.0 and agent.env_steps < 1_000_000:
        agent.fit(rollouts, total_steps=4 * rollouts.steps_per_round, verbose=0)
        if rollouts.logs()["episode_return"] < 300.0:
            continue
        found = agent.evaluate(
            rl.EvaluationDataset("CartPole-v1", num_envs=20, episodes=20),
            verbose=0,
            return_dict=True,
        )["episode_return"]
    return {
        "first_round": compiled,
        "training": time.perf_counter() - start,
        "steps": agent.env_steps,
        "return": found,
    }


def print_solved(arguments):
    """Prints the seconds from the start of a process to 475."""
    own = [sys.executable, __file__, "--to-475"]
    commands = {kind: [*own, kind] for kind in ("graph", "gymnasium")}
    steps = 4 * SOLVED["envs"] * HORIZON
    if arguments.sb3:
        commands["Stable-Baselines3"] = peers.peer_command(
            arguments.sb3,
            "PPO",
            SOLVED["env"],
            {
                "n_steps": HORIZON,
                "n_epochs": PASSES,
                "batch_size": SOLVED["envs"] * HORIZON // SOLVED["minibatches"],
                "learning_rate": SOLVED["learning_rate"],
                "clip_range_vf": 0.2,
                "ent_coef": 0.01,
            },
            steps=steps,
            envs=SOLVED["envs"],
            solve=475,
        )
    if arguments.peer:
        task = {**SOLVED, "steps": PUREJAXRL_STEPS}
        rate = ["--rate", str(SOLVED["learning_rate"])]
        commands["PureJaxRL"] = [*command(task, arguments), *rate]
    results = {name: [] for name in commands}
    for _ in range(arguments.runs):
        for name, each in commands.items():
            start = time.perf_counter()
            result = peers.run(each)
            whole = time.perf_counter() - start
            results[name].append({"whole": whole, **result})
    for name, found in results.items():
        print(name)
        for figure in ("whole", "first_round", "training", "steps", "return"):
            values = [one[figure] for one in found if figure in one]
            if values:
                shown = ", ".join(f"{value:.1f}" for value in values)
                median = statistics.median(values)
                print(f"  {figure:12} {median:.1f} ({shown})")


if __name__ == "__main__":
    main()
