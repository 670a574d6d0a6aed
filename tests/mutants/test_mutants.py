"""Mutants fit the present sources and tests, so that the list does not rot.

They themselves are tried by `python tests/mutants/run.py`.
"""

import ast

import pytest

from mutants import run
from mutants.mutant import Mutant
from support.sources import functions_of


def test_names_are_told_apart():
    names = [mutant.name for mutant in run.MUTANTS]
    assert sorted(names) == sorted({*names})
    assert all(name.isidentifier() for name in names)


@pytest.mark.parametrize("mutant", run.MUTANTS, ids=lambda each: each.name)
def test_it_can_be_made_and_its_tests_are_there(mutant):
    path, changed = run.mutated(mutant, run.ROOT)
    assert changed != path.read_text("utf-8")
    ast.parse(changed)
    assert mutant.tests
    for test in mutant.tests:
        # Of one parametrisation alone nobody knows which layer it is of.
        path, _, name = run.with_folder(test).partition("::")
        assert not name or name in functions_of(run.ROOT / path)


MODULE = """
def plain():
    return a + b


class Both:
    @property
    def both(self):
        return a - b

    @both.setter
    def both(self, value):
        self.value = a + b

    class Inner:
        twice = a + b + a + b
"""


@pytest.fixture
def checkout(tmp_path):
    for name in ("keras_rl2/one.py", "keras_rl2/room/two.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(MODULE, "utf-8")
    (tmp_path / "callbacks").mkdir()
    (tmp_path / "callbacks/__init__.py").write_text("x = a + b", "utf-8")
    return tmp_path


def mutant_of(place):
    return Mutant("sign", place, "a + b", "a * b", ["test_mutants.py"])


@pytest.mark.parametrize(
    ("place", "path", "line"),
    [
        ("one:plain", "keras_rl2/one.py", "    return a * b"),
        ("two:plain", "keras_rl2/room/two.py", "    return a * b"),
        # Of a property it is the setter, which alone has the text.
        (
            "two:Both.both",
            "keras_rl2/room/two.py",
            "        self.value = a * b",
        ),
        ("callbacks:", "callbacks/__init__.py", "x = a * b"),
    ],
)
def test_a_mistake_is_made_where_its_place_says(checkout, place, path, line):
    found, changed = run.mutated(mutant_of(place), checkout)
    assert found == checkout / path
    before = found.read_text("utf-8").split("\n")
    after = changed.split("\n")
    assert [b for a, b in zip(before, after, strict=True) if a != b] == [line]


@pytest.mark.parametrize(
    ("place", "times"), [("one:Both.Inner", 2), ("one:Both", 3), ("one:", 4)]
)
def test_a_text_that_is_not_there_once(checkout, place, times):
    with pytest.raises(ValueError, match=rf"in {place}. Received: {times} "):
        run.mutated(mutant_of(place), checkout)


@pytest.mark.parametrize(
    ("place", "received"),
    [
        ("plain", "keras_rl2/one.py, keras_rl2/room/two.py"),
        ("two:other", "none"),
        ("three:", "none"),
    ],
)
def test_a_place_that_is_in_no_file_or_in_several(checkout, place, received):
    with pytest.raises(
        ValueError, match=rf"`file:{place}`. Received: {received}"
    ):
        run.mutated(mutant_of(place), checkout)


def test_names_of_tests_get_their_folder():
    test = "test_mutants.py::test_names_of_tests_get_their_folder"
    assert run.with_folder(test) == f"tests/mutants/{test}"
    assert run.with_folder("tests/a.py::test_b") == "tests/a.py::test_b"
    with pytest.raises(ValueError, match=r"one file test_memory.py .*, tests/"):
        run.with_folder("test_memory.py")


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
