"""Pages for users of other libraries name things that exist."""

import inspect
import re
import sys
from pathlib import Path

import gymnasium
import keras
import pytest

import keras_rl2 as rl

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("coming_from_*.md"))
SB3 = ROOT / "docs" / "coming_from_stable_baselines3.md"
LIBRARIES = {"rl": rl, "keras": keras, "gymnasium": gymnasium}
_NAME = re.compile(r"((?:rl|keras|gymnasium)(?:\.\w+)+)(?:\(([\w, ]*)\))?")


def cells(page, column):
    """Yields the names in backticks of a column of all tables."""
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            row = re.split(r" \| ", line.strip("| "))
            if len(row) > column:
                yield from re.findall(r"`([^`]+)`", row[column])


def ours(page):
    """Returns our names on a page, with the arguments that it gives them."""
    found = [each for each in cells(page, 1) if _NAME.match(each)]
    return sorted({_NAME.fullmatch(each).groups("") for each in found})


def resolve(name):
    """Returns the object of a name."""
    library, *rest = name.split(".")
    value = LIBRARIES[library]
    for part in rest:
        value = getattr(value, part)
    return value


def takes(value, argument):
    """Says whether a class, function or method has an argument."""
    functions = [value]
    if inspect.isclass(value):
        functions = [
            base.__init__
            for base in value.__mro__
            if "__init__" in vars(base) and base is not object
        ]
    for function in functions:
        if argument in inspect.signature(function).parameters:
            return True
    # What goes through `**kwargs` is named where one looks.
    return f"`{argument}`" in (inspect.getdoc(value) or "")


@pytest.mark.parametrize("page", PAGES)
def test_all_names_of_ours_exist(page):
    names = ours(page)
    assert len(names) >= 7, page.name
    for name, arguments in names:
        value = resolve(name)
        for argument in arguments.replace(",", " ").split():
            assert takes(value, argument), f"{page.name}: {name}({argument})"


def test_the_table_of_parity_lists_all_algorithms_below_the_limit():
    from migrate import parity

    table = SB3.read_text("utf-8").split(parity.HEAD)[1].split("\n\n")[0]
    rows = [line.strip("|").split("|") for line in table.strip().splitlines()]
    kinds = {row[0].split(",")[0].strip() for row in rows}
    assert kinds == {"PPO", "A2C", "DQN", "SAC", "TD3"}
    for row in rows:
        numbers = [float(cell) for cell in row[3:] if cell.strip()]
        assert len(numbers) >= 2
        assert max(numbers) < 1e-5, row


@pytest.mark.slow
def test_every_argument_of_theirs_is_on_the_page():
    sb3 = pytest.importorskip("stable_baselines3")
    named = set(cells(SB3, 0))
    for kind in (sb3.PPO, sb3.A2C, sb3.DQN, sb3.SAC, sb3.TD3):
        for name in inspect.signature(kind.__init__).parameters:
            if name not in ("self", "_init_setup_model"):
                assert name in named, f"{kind.__name__}({name})"


def test_examples_of_keras_io_are_short():
    sys.path.append(str(ROOT / "tests"))
    from benchmarks import keras_io

    paths = sorted((ROOT / "examples" / "keras_io").glob("*.py"))
    assert [path.stem for path in paths] == sorted(keras_io.UNTIL)
    for path in paths:
        source = path.read_text("utf-8")
        assert re.match(r'"""keras.io.*: expect .*\d', source)
        assert keras_io.code_lines(source) <= 25, path.name
