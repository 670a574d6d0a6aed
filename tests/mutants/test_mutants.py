"""Mutants fit the present sources and tests, so that the list does not rot.

They themselves are tried by `python tests/mutants/run.py`.
"""

import ast
import functools
from pathlib import Path

import pytest

from mutants import run
from mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def functions_of(path):
    """Returns the names of the test functions of a file."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_names_are_told_apart():
    names = [mutant.name for mutant in run.MUTANTS]
    assert sorted(names) == sorted({*names})
    assert all(name.isidentifier() for name in names)


@pytest.mark.parametrize("mutant", run.MUTANTS, ids=lambda each: each.name)
def test_it_can_be_made_and_its_tests_are_there(mutant):
    text = (ROOT / mutant.path).read_text("utf-8")
    changed = run.mutated(mutant, text)
    assert changed != text
    ast.parse(changed)
    assert mutant.tests
    for test in mutant.tests:
        # Of one parametrisation alone nobody knows which layer it is of.
        path, *names = test.split("::")
        assert functions_of(path) >= {*names[-1:]}


@pytest.mark.parametrize("text", ["x = 1", "a + b; a + b"])
def test_a_text_that_is_not_there_once(text):
    mutant = Mutant("sign", "some.py", "a + b", "a - b", ["tests/test_a.py"])
    with pytest.raises(ValueError, match=r"sign once in some.py. Received: "):
        run.mutated(mutant, text)


@pytest.mark.parametrize(
    ("status", "output", "found"),
    [
        (
            1,
            "FAILED tests/a.py::test_b[1-x] - assert 1",
            "tests/a.py::test_b[1-x]",
        ),
        (1, "ERROR tests/a.py::test_b - OSError", "tests/a.py::test_b"),
        (0, "3 passed", None),
        # Nothing ran; a file that cannot be collected; one that hangs.
        (5, "3 deselected", None),
        (2, "ERROR tests/a.py - ImportError", None),
        (-1, "It took too long.", None),
    ],
)
def test_only_a_test_that_fails_is_a_killer(status, output, found):
    assert run.killer(status, output) == found
