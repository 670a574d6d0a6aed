"""Puts known mistakes into copies of the package; the tests must find each.

    python tests/mutants/run.py [--only NAME ...] [--jobs N]

First the tests of all mutants have to pass in a copy of the checkout. Then each
mistake is made in a copy of its own, where the test of the mutant has to fail.
Ends with 1 if one survives, or cannot be made. The checkout is not changed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from mutants.mistakes import MUTANTS
from mutants.mistakes import Mutant

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("keras_rl2", "callbacks", "tests", "conftest.py", "setup.cfg")
_PYTEST = ("-m", "pytest", "-x", "-q", "-n", "0", "--dist=no")
# A guard: a mutant that hangs is not one that a test has found.
_LONGEST = 1800.0


def mutated(mutant: Mutant) -> str:
    """Returns the text of a file with a mistake in it.

    Raises:
        ValueError: If the text before is not found exactly once.
    """
    text = (ROOT / "keras_rl2" / mutant.path).read_text("utf-8")
    if (times := text.count(mutant.before)) != 1:
        raise ValueError(
            f"Expected the text of {mutant.name} once in {mutant.path}. "
            f"Received: {times} times"
        )
    return text.replace(mutant.before, mutant.after)


def run_tests(tests: list[str], mutant: Mutant | None = None) -> str | None:
    """Runs tests in a copy of the checkout, with a mistake if one is given.

    Returns:
        The output of pytest if a test failed, else None.

    Raises:
        RuntimeError: If pytest ended otherwise, without any test say.
    """
    with tempfile.TemporaryDirectory() as name:
        for each in _COPIED:
            if (ROOT / each).is_dir():
                shutil.copytree(
                    ROOT / each,
                    Path(name, each),
                    symlinks=True,
                    ignore=shutil.ignore_patterns("__pycache__"),
                )
            else:
                shutil.copy2(ROOT / each, name)
        if mutant:
            file = Path(name, "keras_rl2", mutant.path)
            file.write_text(mutated(mutant), "utf-8")
        done = subprocess.run(
            [sys.executable, *_PYTEST, *(f"tests/{test}" for test in tests)],
            cwd=name,
            env={**os.environ, "PYTHONPATH": name},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_LONGEST,
        )
    if done.returncode not in (0, 1):
        raise RuntimeError(
            f"pytest ended with {done.returncode}\n{done.stdout}"
        )
    return done.stdout if done.returncode else None


def is_killed(mutant: Mutant) -> bool:
    """Tries a mutant, and prints which test found it."""
    begin = time.monotonic()
    try:
        output = run_tests([mutant.test], mutant)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        output, result = None, f"BROKEN: {error}"
    else:
        found = re.search(r"(?m)^(?:FAILED|ERROR) (\S+)", output or "")
        result = found[1] if found else "SURVIVED"
    seconds = time.monotonic() - begin
    print(f"{mutant.name:50} {seconds:4.0f} s  {result}", flush=True)
    return output is not None


def main() -> int:
    """Reads the command line and tries the mutants that it names."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    arguments = parser.parse_args()
    known = {mutant.name: mutant for mutant in MUTANTS}
    if unknown := sorted({*(arguments.only or ())} - {*known}):
        parser.error(f"Expected names of mutants. Received: {unknown}")
    mutants = [known[name] for name in arguments.only or known]
    for mutant in mutants:
        mutated(mutant)
    if output := run_tests(sorted({mutant.test for mutant in mutants})):
        sys.exit(f"The tests fail without any mutant.\n{output}")
    with ThreadPoolExecutor(arguments.jobs) as pool:
        killed = sum(pool.map(is_killed, mutants))
    print(f"{killed} of {len(mutants)} mutants killed")
    return int(killed < len(mutants))


if __name__ == "__main__":
    sys.exit(main())
