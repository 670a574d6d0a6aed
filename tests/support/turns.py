"""Which value has its turn in which test: the table `tests/turns.json`.

Most tests over agents run for one or a few of them in the default layer, and
for the others in the slow layer. The table has a row for each such test, by
file and name, with the values of the argument that the default layer runs.

    python tests/support/turns.py --write

writes the rows that are missing and removes those of tests that are gone. A
new row gets the values that have had the fewest turns; a row that fits is
kept, so that a row may also be edited by hand.
"""

import argparse
import contextlib
import functools
import io
import json
import sys
from collections import Counter
from collections import defaultdict
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1]))

from keras_rl2.presets.algorithms import ALGORITHMS
from support.sources import functions_of

TESTS = Path(__file__).resolve().parents[1]
TABLE = TESTS / "turns.json"
COMMAND = "python tests/support/turns.py --write"
#: Agents that run in the default layer in all tests over agents.
ALWAYS = ("PPO", "A2C", "REINFORCE", "DQN", "SAC", "TD3", "DDPG")
#: The others differ from one of these by their loss. They take turns in all
#: tests over agents, since their losses have tests of their own.
ANOTHER_LOSS = tuple(
    name
    for name in (*ALGORITHMS, "BoxCQL", "DiscreteCQL")
    # `CQL` makes agents of the two classes.
    if name not in (*ALWAYS, "CQL")
)


@functools.cache
def table():
    """Returns the rows: dicts from arguments to names of values, by test."""
    return json.loads(TABLE.read_text("utf-8"))


def functions(items):
    """Returns the parametrisations of each test function, by its node id."""
    found = defaultdict(list)
    for item in items:
        found[item.nodeid.split("[")[0]].append(item)
    return found


def key_of(nodeid):
    """Returns the name of a test function's row, which has no folder."""
    return nodeid.split("/")[-1]


def named(value):
    """Returns the name that a value of an argument has in the table."""
    return str(getattr(value, "__name__", value))


def groups_of(items):
    """Returns the values that take turns in a test, in groups.

    Args:
        items: All parametrisations of the test.

    Returns:
        dict from arguments to lists of groups, which are lists of names. One
        value of each group has its turn. Empty where nothing takes turns.
    """
    items = [item for item in items if not _has_a_layer_of_its_own(item)]
    if not items or not hasattr(items[0], "callspec"):
        return {}
    spread, rotate = map(items[0].get_closest_marker, ("spread", "rotate"))
    if rotate:
        arguments = rotate.kwargs
    elif spread and "name" in spread.kwargs:
        # The test says itself which agents the default layer runs.
        return {}
    else:
        arguments = {"name": [ANOTHER_LOSS]}
    found = {}
    for argument, groups in arguments.items():
        given = {named(item.callspec.params.get(argument)) for item in items}
        present = [
            [v for v in map(named, each) if v in given] for each in groups
        ]
        if any(present):
            found[argument] = [group for group in present if group]
    return found


def _has_a_layer_of_its_own(item):
    """Says whether a test is marked for another layer than the default one."""
    marks = ("slow", "learning", "benchmark")
    return any(map(item.get_closest_marker, marks))


def groups_by_test(collected):
    """Returns the groups of tests, by the names of their rows.

    Args:
        collected: As of `functions`.

    Raises:
        ValueError: If two tests in which values take turns have one name.
    """
    found = {}
    for nodeid, items in collected.items():
        key, groups = key_of(nodeid), groups_of(items)
        if groups and found.get(key):
            raise ValueError(
                "Expected tests that take turns to differ in the name of their "
                f"file or in their own. Received: {key} twice"
            )
        found[key] = groups or found.get(key, {})
    return found


def completed(rows, tests):
    """Returns the rows of tests, in which each group has a turn.

    Args:
        rows: The rows so far. Values that still take turns are kept.
        tests: dict from names of tests to groups, as of `groups_of`.
    """
    turns = Counter(
        name for row in rows.values() for each in row.values() for name in each
    )
    result = {}
    for key, groups in tests.items():
        for argument, each in groups.items():
            chosen = {*rows.get(key, {}).get(argument, ())}
            for group in each:
                taken = chosen.intersection(group)
                often = [name for name in taken if turns[name] > 2]
                if often and not all(turns[name] for name in group):
                    # A new one has had no turn so far.
                    turns[often[0]] -= 1
                    chosen.remove(often[0])
                    taken.remove(often[0])
                if not taken:
                    fewest = min(group, key=turns.__getitem__)
                    turns[fewest] += 1
                    chosen.add(fewest)
            result.setdefault(key, {})[argument] = [
                name for group in each for name in group if name in chosen
            ]
    return result


def faults(rows, tests):
    """Returns the names of tests whose rows are missing or do not fit."""
    expected = completed(rows, tests)
    return [key for key in tests if rows.get(key) != expected.get(key)]


def gone(rows):
    """Returns the names of rows whose tests are gone."""
    there = {
        f"{path.name}::{name}"
        for path in TESTS.rglob("test_*.py")
        for name in functions_of(path)
    }
    return sorted(set(rows) - there)


class _Collecting:
    """Plugin of pytest that keeps the groups of all tests."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collection_modifyitems(self, items):
        # Before `conftest.py` marks some as slow.
        self.tests = groups_by_test(functions(items))
        return (yield)


def write():
    """Writes the table anew."""
    collecting, rows = _Collecting(), table()
    arguments = ["--collect-only", "-q", "-n0", "-m", "", str(TESTS)]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        status = pytest.main(arguments, [collecting])
    if status:
        sys.exit(printed.getvalue())
    # Some tests are not collected where a package is not installed.
    kept = {key: rows[key] for key in {*rows}.difference(collecting.tests)}
    for key in gone(kept):
        del kept[key]
    kept |= completed(rows, collecting.tests)
    lines = [
        f"{json.dumps(key)}: {json.dumps(kept[key])}" for key in sorted(kept)
    ]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    write()
