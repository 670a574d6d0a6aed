"""Trains presets on several seeds beside Stable-Baselines3, for BENCHMARKS.md.

    python benchmarks/table.py --peer VENV/bin/python
    python benchmarks/table.py --peer VENV/bin/python dqn-CartPole-v1
    python benchmarks/table.py --report

Without names it takes every preset that is marked `laptop`. What has been run
is kept in a file for each preset under `benchmarks/results` and is not
run again while the preset stays the same: stop it and go on as you like. The
table is written after each preset, and by `--report` alone.

Both sides of a seed run one after the other with as many threads. With `--jobs`
several seeds run at a time; both sides then share the machine alike.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks import markdown
from benchmarks import peers
from benchmarks import preset_peer
from benchmarks.markdown import OURS
from benchmarks.markdown import PEER
from benchmarks.preset_names import laptop_presets
from benchmarks.preset_names import name_of
from benchmarks.preset_names import preset_of
from benchmarks.preset_run import EPISODES
from benchmarks.results import Results

HERE = Path(__file__).resolve().parent
TABLE = HERE.parent / "BENCHMARKS.md"
KEPT = HERE / "results"


def main():
    arguments = parse()
    if not arguments.report:
        if arguments.peer is None:
            sys.exit("Expected --peer, a Python with stable-baselines3")
        jobs = [
            (preset, seed)
            for preset in arguments.presets or map(preset_of, laptop_presets())
            for seed in range(arguments.seeds)
        ]
        train_all(jobs, arguments)
    markdown.write(KEPT, TABLE)


def parse():
    """Returns the arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("presets", nargs="*", type=preset_of)
    parser.add_argument("--peer", help="a Python with stable-baselines3")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of each run")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="runs at a time"
    )
    parser.add_argument(
        "--report", action="store_true", help="write the table, train nothing"
    )
    return parser.parse_args()


def train_all(jobs, arguments):
    """Trains both sides of all seeds, several at a time."""
    writing = threading.Lock()

    def train(job):
        preset, seed = job
        for side in (OURS, PEER):
            with writing:
                kept = Results.read(KEPT, preset)
            if not kept.has(side, seed):
                run = train_one(side, preset, seed, arguments)
                with writing:
                    kept = Results.read(KEPT, preset)
                    kept.add(side, seed, run)
                    kept.write(KEPT)
                    markdown.write(KEPT, TABLE)
                print(name_of(preset), seed, side, json.dumps(run), flush=True)

    with ThreadPoolExecutor(arguments.jobs) as pool:
        # A failure is raised by what reads the results.
        for done in [pool.submit(train, job) for job in jobs]:
            done.result()


def train_one(side, preset, seed, arguments):
    """Trains one side on one seed, in a process of its own."""
    if side == PEER:
        command = preset_peer.command(
            arguments.peer, preset, seed, arguments.threads, EPISODES
        )
    else:
        command = [sys.executable, str(HERE / "preset_run.py")]
        command += [name_of(preset), "--seed", str(seed)]
        command += ["--threads", str(arguments.threads)]
    return peers.run(command)


if __name__ == "__main__":
    try:
        main()
    except subprocess.SubprocessError as error:
        sys.exit(str(error))
