"""Finds functions, classes and modules of the package by their names.

A mutant names the function, class or module that holds its text, so that a
file may be moved or renamed:

- `clipped_surrogate`, `TransitionRing`, `TransitionRing.extend`: a function, a
  class, a method, or what is defined in one of them;
- `windows:gather`: the same, in the file `windows.py`, where several files have
  one of that name;
- `windows:`: all of that file. That of a package is named as its folder.
"""

import ast
import functools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PRODUCT = ("keras_rl2", "callbacks")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Place(NamedTuple):
    """Lines of a file.

    Attributes:
        path: The file.
        first: Number of the first line, from 0.
        end: Number of the line after the last.
    """

    path: Path
    first: int
    end: int


def text_of(place: Place) -> str:
    """Returns what stands there."""
    lines = place.path.read_text("utf-8").splitlines(keepends=True)
    return "".join(lines[place.first : place.end])


def replaced(place: Place, text: str) -> str:
    """Returns the text of the file with another text there."""
    lines = place.path.read_text("utf-8").splitlines(keepends=True)
    lines[place.first : place.end] = [text]
    return "".join(lines)


def find(name: str, root: Path) -> list[Place]:
    """Returns the places that have a name, all in one file.

    They are several where a property has a setter, or a function signatures.

    Args:
        name: str. See above.
        root: Path. The checkout, or a copy of it.

    Raises:
        ValueError: If there is none, or there are some in several files.
    """
    found = _places(root).get(name, [])
    paths = sorted({str(each.path.relative_to(root)) for each in found})
    if len(paths) != 1:
        raise ValueError(
            f"Expected one file with `{name}`, or `file:{name}`. Received: "
            f"{', '.join(paths) or 'none'}"
        )
    return found


@functools.cache
def _places(root: Path) -> dict[str, list[Place]]:
    """Returns all that can be named."""
    found = defaultdict(list)
    for folder in _PRODUCT:
        for path in sorted((root / folder).rglob("*.py")):
            stem = path.stem if path.stem != "__init__" else path.parent.name
            text = path.read_text("utf-8")
            found[f"{stem}:"].append(Place(path, 0, text.count("\n") + 1))
            for name, first, end in _definitions(ast.parse(text)):
                found[name].append(Place(path, first, end))
                found[f"{stem}:{name}"].append(Place(path, first, end))
    return found


def _definitions(
    parent: ast.AST, prefix: str = ""
) -> Iterator[tuple[str, int, int]]:
    """Yields names and lines of all that is defined within some syntax."""
    for node in ast.iter_child_nodes(parent):
        inner = prefix
        if isinstance(node, _DEFINITIONS):
            first = min(
                [node.lineno, *(each.lineno for each in node.decorator_list)]
            )
            yield f"{prefix}{node.name}", first - 1, int(node.end_lineno or 0)
            inner = f"{prefix}{node.name}."
        yield from _definitions(node, inner)
