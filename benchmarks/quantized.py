"""Measures what smaller LiteRT files cost of the return.

    python benchmarks/quantized.py --runs FOLDER

trains the agents that FOLDER does not hold yet, by `keras-rl2 train`, exports
each in 32, 16 and 8 bits, plays as many episodes with each file as with the
agent, in environments of the same seeds, and writes the table between the marks
of docs/export.md.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.append(str(Path(__file__).resolve().parents[1]))

import numpy as np

import keras_rl2 as rl
from benchmarks.marked import write_between
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.run_folder import run_name

PAGE = Path(__file__).resolve().parents[1] / "docs" / "export.md"
TASKS = [
    ("PPO", "CartPole-v1"),
    ("PPO", "Acrobot-v1"),
    ("SAC", "Pendulum-v1"),
]
BITS = {"float32": None, "float16": "float16", "int8": "int8"}
HEAD = """\
| Task | Agent's return | float32 | Bytes | float16 | Bytes | int8 | Bytes \
| int8 loses |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def trained(runs, algorithm, env):
    """Returns the best agent of a training, which is made if need be."""
    folder = RunFolder(runs / run_name(algorithm, env) / "seed-0")
    if not folder.holds_training:
        command = [sys.executable, "-m", "keras_rl2.cli", "train"]
        subprocess.run(
            [*command, algorithm, env, "--seed", "0", "--logdir", str(runs)],
            check=True,
        )
    _, file = RunFolder.holding(folder.path)
    return rl.load(file)


def row(agent, algorithm, env, episodes, folder):
    """Returns a line of the table."""
    cells, checks = [], {}
    parts = [rl.record(each, env, 1000).recorded for each in (agent, "random")]
    played = np.concatenate([part.observation for part in parts])
    for name, quantize in BITS.items():
        path = folder / f"{name}.tflite"
        seen = played if quantize == "int8" else None
        agent.export(path, "litert", quantize=quantize, representative=seen)
        checks[name] = agent.check_export(
            path, env, episodes=episodes, num_envs=20, seed=1000
        )
        cells += [
            f"{checks[name].file_episode_return:.1f}",
            f"{path.stat().st_size:,}".replace(",", " "),
        ]
    cells = [
        f"{algorithm}, {env}",
        f"{checks['float32'].episode_return:.1f}",
        *cells,
        f"{checks['int8'].lost:.1%}",
    ]
    return f"| {' | '.join(cells)} |"


def main():
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    lines = [HEAD]
    for algorithm, env in TASKS:
        agent = trained(arguments.runs, algorithm, env)
        with tempfile.TemporaryDirectory() as folder:
            lines.append(
                row(agent, algorithm, env, arguments.episodes, Path(folder))
            )
        print(lines[-1], flush=True)
    write_between(arguments.page, "quantized", "\n".join(lines))


if __name__ == "__main__":
    main()
