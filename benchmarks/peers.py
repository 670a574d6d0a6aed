"""What the comparisons with other libraries share: running and reporting."""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run(command):
    """Runs a command and reads its last line as JSON."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stderr}\nexit status {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def peer_command(python, algorithm, env, settings, *flags, **options):
    """Returns the command that runs a peer in its own environment.

    Args:
        python: str. The Python that has the peer.
        algorithm: str. `"PPO"`, for example.
        env: str. Id of the environment.
        settings: dict. Constructor arguments of the peer.
        *flags: str. `"warm"` for `--warm`.
        **options: `steps=100` for `--steps 100`.
    """
    command = [python, str(HERE / "peer_sb3.py"), algorithm, env]
    command += ["--settings", json.dumps(settings)]
    command += [f"--{flag}" for flag in flags]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    return command


def parse_cases(description, cases):
    """Returns the arguments of a program that compares libraries in cases.

    Args:
        description: str. Docstring of the program.
        cases: dict by name.
    """
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--peer", help="a Python with stable-baselines3")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=cases, default=[*cases])
    parser.add_argument("--side", choices=["ours", "peer"])
    return parser.parse_args()


def run_case(file, case, arguments):
    """Runs both sides of a case in turn; see `alternate`.

    Args:
        file: str. The program, which runs one side for `--side`.
        case: str.
        arguments: As returned by `parse_cases`.
    """
    side = [file, "--only", case, "--side"]
    commands = {"keras_rl2": [sys.executable, *side, "ours"]}
    if arguments.peer:
        commands["stable-baselines3"] = [arguments.peer, *side, "peer"]
    return alternate(commands, arguments.runs)


def alternate(commands, runs):
    """Runs several sides in turn, each run in a fresh process.

    Args:
        commands: dict of name and command; ours first.
        runs: int. Runs of each.

    Returns:
        dict of name and list of what each run printed.
    """
    results = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            results[name].append(run(command))
    return results


def print_speeds(results):
    """Prints medians and ranges, and how ours, the first, stands to others."""
    ours = next(iter(results))
    for name, each in results.items():
        speeds = [result["steps_per_second"] for result in each]
        memory = [result.get("peak_rss_mib", 0.0) for result in each]
        print(
            f"  {name:18} {statistics.median(speeds):9.0f} steps/s "
            f"({min(speeds):.0f} to {max(speeds):.0f})"
            f"  {statistics.median(memory):6.0f} MiB at most"
        )
    for name, each in results.items():
        if name == ours:
            continue
        ratios = [
            own["steps_per_second"] / other["steps_per_second"]
            for own, other in zip(results[ours], each, strict=True)
        ]
        print(
            f"  ratio to {name} {statistics.median(ratios):.2f} "
            f"(each run: {', '.join(f'{ratio:.2f}' for ratio in ratios)})"
        )


def print_parts(results, parts):
    """Prints where the milliseconds of a round go, medians of all runs."""
    median = {
        key: statistics.median(result[key] for result in results)
        for key in (*parts, "round")
    }
    for part in parts:
        share = 100.0 * median[part] / median["round"]
        print(f"  {part:8} {median[part]:8.3f} ms {share:5.1f} %")
    print(f"  round    {median['round']:8.3f} ms", flush=True)


def clock(target, name, key, spent):
    """Adds the time within a method to `spent`."""
    if name == "__call__":
        owner = type(target)
        method = owner.__call__

        def timed(self, *arguments):
            start = time.perf_counter()
            result = method(self, *arguments)
            spent[key] = spent.get(key, 0.0) + time.perf_counter() - start
            return result

        owner.__call__ = timed
        return
    method = getattr(target, name)

    def timed_method(*arguments, **options):
        start = time.perf_counter()
        result = method(*arguments, **options)
        spent[key] = spent.get(key, 0.0) + time.perf_counter() - start
        return result

    object.__setattr__(target, name, timed_method)


def time_updates(agent, one_round, rounds):
    """Times the bare update of a round: the graph call, and nothing else.

    Args:
        agent: `keras_rl2.Agent`. What is trained, after a `fit`.
        one_round: dict of arrays. As `hand_over` of a dataset gives it.
        rounds: int. How often.

    Returns:
        float. Seconds of one round.
    """
    iterator = itertools.repeat(one_round)
    function = agent.make_train_function()
    start = time.perf_counter()
    for _ in range(rounds):
        function(iterator)
    return (time.perf_counter() - start) / rounds
