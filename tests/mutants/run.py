"""Puts known mistakes into copies of the package; the tests must find each.

    python tests/mutants/run.py [--only NAME ...] [--jobs N]

copies the package and its tests to a temporary folder, where the tests that
the mutants name have to pass; then makes one mistake at a time in another copy
and runs the tests of that mutant: those of the default layer, or slow ones
where it says so. Prints which test found each. Ends with 1 if one survives, or
cannot be made. The checkout is not changed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from mutants import of_agents
from mutants import of_callbacks
from mutants import of_checkpoints
from mutants import of_collecting
from mutants import of_distributions
from mutants import of_env_state
from mutants import of_exports
from mutants import of_files
from mutants import of_losses
from mutants import of_networks
from mutants import of_replay
from mutants import of_workers
from mutants import places
from mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = [
    *of_losses.MUTANTS,
    *of_distributions.MUTANTS,
    *of_collecting.MUTANTS,
    *of_replay.MUTANTS,
    *of_agents.MUTANTS,
    *of_callbacks.MUTANTS,
    *of_checkpoints.MUTANTS,
    *of_files.MUTANTS,
    *of_exports.MUTANTS,
    *of_env_state.MUTANTS,
    *of_networks.MUTANTS,
    *of_workers.MUTANTS,
]

_TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
_COPIED = ("keras_rl2", "callbacks", "tests", "conftest.py", "setup.cfg")
_PYTEST = ("-m", "pytest", "-x", "-q", "-n", "0", "--dist=no")
_SLOW = ("-m", "slow and not learning and not benchmark")
# A mutant that hangs is not one that a test has found.
_LONGEST = 1800.0


def killer(status: int, output: str) -> str | None:
    """Returns the test that failed, if tests were run and one did.

    Args:
        status: int. What pytest ended with: 1 where tests failed; others mean
            that none was found, or that a file could not be collected.
        output: str. What it printed.
    """
    found = re.search(r"(?m)^(?:FAILED|ERROR) (\S+)", output)
    return found[1] if status == 1 and found else None


def copy_checkout(folder: Path) -> None:
    """Copies what the tests need into a folder."""
    ignored = shutil.ignore_patterns("__pycache__", "benchmarks")
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, symlinks=True, ignore=ignored
            )
        else:
            shutil.copy2(source, folder / name)


def run_tests(
    folder: Path, tests: Sequence[str], slow: bool = False
) -> tuple[int, str]:
    """Runs tests in a copy.

    Args:
        folder: Path. The copy.
        tests: Files, or functions of files.
        slow: bool. Whether the slow ones, not those of the default layer.

    Returns:
        The exit status of pytest and what it printed.
    """
    try:
        done = subprocess.run(
            [
                sys.executable,
                *_PYTEST,
                *(_SLOW if slow else ()),
                *map(with_folder, tests),
            ],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LONGEST,
        )
    except subprocess.TimeoutExpired:
        return -1, f"It took over {_LONGEST:.0f} s."
    return done.returncode, done.stdout


def mutated(mutant: Mutant, root: Path) -> tuple[Path, str]:
    """Returns a file, and its text with the mistake in it.

    Args:
        mutant: `Mutant`.
        root: Path. The checkout, or a copy of it.

    Raises:
        ValueError: If the text is not found exactly once.
    """
    found = [
        (place, text.replace(mutant.before, mutant.after))
        for place in places.find(mutant.place, root)
        for text in [places.text_of(place)]
        for _ in range(text.count(mutant.before))
    ]
    if len(found) != 1:
        raise ValueError(
            f"Expected the text of {mutant.name} once in {mutant.place}. "
            f"Received: {len(found)} times"
        )
    [(place, text)] = found
    return place.path, places.replaced(place, text)


def with_folder(test: str) -> str:
    """Returns the path of a test of which the name may be enough.

    Raises:
        ValueError: If no file has the name, or several have.
    """
    name, *functions = test.split("::")
    if "/" in name:
        return test
    found = [
        str(path.relative_to(ROOT)) for path in _TESTS if path.name == name
    ]
    if len(found) != 1:
        raise ValueError(
            f"Expected one file {name} in tests. Received: "
            f"{', '.join(found) or 'none'}"
        )
    return "::".join([*found, *functions])


def try_mutant(mutant: Mutant, pristine: Path) -> tuple[bool, str]:
    """Makes the mistake in a copy of a copy and runs the tests of it.

    Returns:
        Whether a test found it, and a row of the table.
    """
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "mutant"
        shutil.copytree(pristine, folder, symlinks=True)
        path, text = mutated(mutant, pristine)
        (folder / path.relative_to(pristine)).write_text(text, "utf-8")
        status, output = run_tests(folder, mutant.tests, mutant.slow)
    found = killer(status, output)
    result = found or f"SURVIVED: pytest ended with {status}"
    row = f"{mutant.name:54} {time.monotonic() - begin:4.0f} s  {result}"
    # Nothing is to be seen where all tests passed.
    return bool(found), row if found or not status else f"{row}\n{output}"


def try_all(mutants: Sequence[Mutant], jobs: int) -> list[str]:
    """Tries mutants, prints what found them and returns the survivors."""
    begin = time.monotonic()
    survivors = []
    with tempfile.TemporaryDirectory() as name:
        pristine = Path(name)
        copy_checkout(pristine)
        for slow in sorted({mutant.slow for mutant in mutants}):
            tests = sorted(
                {t for each in mutants if each.slow == slow for t in each.tests}
            )
            status, output = run_tests(pristine, tests, slow)
            if status:
                sys.exit(f"The tests fail without any mutant.\n{output}")
        seconds = time.monotonic() - begin
        print(f"The tests pass without any mutant, {seconds:.0f} s", flush=True)
        with ThreadPoolExecutor(jobs) as pool:
            tried = pool.map(lambda each: try_mutant(each, pristine), mutants)
            for mutant, (found, row) in zip(mutants, tried, strict=True):
                print(row, flush=True)
                if not found:
                    survivors.append(mutant.name)
    return survivors


def main() -> int:
    """Reads the command line and tries the mutants that it names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", default=[])
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    arguments = parser.parse_args()
    known = {mutant.name: mutant for mutant in MUTANTS}
    if unknown := sorted({*arguments.only} - {*known}):
        parser.error(f"Expected names of mutants. Received: {unknown}")
    mutants = [known[name] for name in arguments.only or known]
    try:
        for mutant in mutants:
            mutated(mutant, ROOT)
    except ValueError as error:
        sys.exit(str(error))
    begin = time.monotonic()
    survivors = try_all(mutants, arguments.jobs)
    seconds = time.monotonic() - begin
    print(
        f"{len(mutants) - len(survivors)} of {len(mutants)} mutants killed in "
        f"{seconds:.0f} s. Survivors: {', '.join(survivors) or 'none'}."
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
