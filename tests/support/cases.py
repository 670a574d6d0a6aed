"""The case of a loop in which a test failed."""

import ast
import functools
import pathlib
import reprlib
import traceback
import types
from collections.abc import Iterator

TESTS = pathlib.Path(__file__).resolve().parents[1]


def name_case(error: BaseException) -> None:
    """Adds the loop variables of the tests to an error, as a note."""
    cases = [
        f"{name}={reprlib.repr(frame.f_locals[name])}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        for name in _loop_variables(frame, line)
        if name in frame.f_locals
    ]
    if cases:
        error.add_note(f"Case: {', '.join(cases)}")


def _loop_variables(frame: types.FrameType, line: int) -> Iterator[str]:
    """Yields the variables of the loops around a line of a test."""
    path = pathlib.Path(frame.f_code.co_filename)
    if TESTS not in path.parents:
        return
    for loop in _loops(path):
        if (
            frame.f_code.co_firstlineno
            <= loop.lineno
            <= line
            <= loop.end_lineno
        ):
            for node in ast.walk(loop.target):
                if isinstance(node, ast.Name) and node.id != "_":
                    yield node.id


@functools.cache
def _loops(path: pathlib.Path) -> list[ast.For]:
    """Returns the loops of a file, outer ones first."""
    tree = ast.parse(path.read_text("utf-8"))
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    return sorted(loops, key=lambda loop: loop.lineno)
