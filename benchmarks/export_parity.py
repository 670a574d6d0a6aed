"""Compares exported policies with their agents, and writes what was found.

    python benchmarks/export_parity.py

writes the tables between the marks of docs/export.md: agents x formats x what
a policy may be made of, greedy and given noise; and what smaller numbers
change. Needs `pip install keras-rl2-fit[onnx]`; takes some minutes.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.append(str(Path(__file__).resolve().parents[1]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import keras_rl2 as rl
from benchmarks.marked import write_between
from support.agents import EVERY_AGENT
from support.export_cases import GIVEN_NOISE
from support.export_cases import OPTIONS
from support.export_cases import agent_of
from support.export_cases import compare
from support.export_cases import fits_eight_bits
from support.export_cases import observations_of
from support.exported import ENDINGS
from support.exported import export

PAGE = Path(__file__).resolve().parents[1] / "docs" / "export.md"
# Choices that are not the same are said beside the numbers.
_NOT_FOR = "-"


def found(agent, folder, form, **options):
    """Returns the larger of what `compare` gives for an export."""
    path = export(agent, folder, form, **options)
    return compare(agent, rl.PolicyFile(path, trusted=True))


def cell(results):
    """Says what was found of several formats."""
    return " / ".join(one(*each) for each in results)


def one(difference, disagreements):
    """Says what was found of one."""
    if disagreements:
        return f"{disagreements:.1%} differ"
    return f"{difference:.0e}" if difference else "0"


def row(name, folder, deterministic, options):
    """Returns a line of the table of an agent."""
    cells = []
    for option in options:
        if name not in OPTIONS[option]:
            cells.append(_NOT_FOR)
            continue
        agent = agent_of(option, name)
        cells.append(
            cell(
                found(agent, folder, form, deterministic=deterministic)
                for form in ENDINGS
            )
        )
    return f"| {name} | {' | '.join(cells)} |"


def table(deterministic):
    """Returns the table of all agents."""
    options = list(OPTIONS) if deterministic else list(GIVEN_NOISE)
    head = f"| Agent | {' | '.join(options)} |"
    lines = [head, f"| --- |{' --- |' * len(options)}"]
    for name in EVERY_AGENT:
        with tempfile.TemporaryDirectory() as folder:
            lines.append(row(name, Path(folder), deterministic, options))
            print(lines[-1], flush=True)
    return "\n".join(lines)


def smaller():
    """Returns the table of LiteRT files of fewer bits."""
    lines = [
        "| Agent | float16, greedy | float16, noise | int8, greedy | "
        "int8, noise |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in EVERY_AGENT:
        agent = agent_of("plain", name)
        seen = observations_of(agent, 512, seed=99)
        cells = []
        with tempfile.TemporaryDirectory() as folder:
            for bits in ("float16", "int8"):
                kept = {"representative": seen} if bits == "int8" else {}
                for deterministic in (True, False):
                    if kept and not fits_eight_bits(
                        "plain", name, deterministic
                    ):
                        cells.append(_NOT_FOR)
                        continue
                    difference, disagreements = found(
                        agent,
                        Path(folder),
                        "litert",
                        deterministic=deterministic,
                        quantize=bits,
                        **kept,
                    )
                    cells.append(one(difference, disagreements))
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


#: What is written, by the name of its marks.
TABLES = {
    "greedy": lambda: table(deterministic=True),
    "noise": lambda: table(deterministic=False),
    "smaller": smaller,
}


def main():
    """Writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--only", choices=TABLES)
    arguments = parser.parse_args()
    for name, make in TABLES.items():
        if arguments.only in (None, name):
            write_between(arguments.page, f"parity-{name}", make())


if __name__ == "__main__":
    main()
