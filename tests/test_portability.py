"""What other systems than this one would trip over, as far as text says it."""

import ast
import re
from pathlib import Path

from support.sources import parsed

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = [
    path
    for folder in ("keras_rl2", "callbacks")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def _printable(tree):
    """Yields strings that are no docstrings."""
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield node.value


def test_messages_are_ascii():
    """Windows writes to a pipe or a file in the code page of the country."""
    assert len(LIBRARY) > 200
    for path in LIBRARY:
        for text in _printable(parsed(path)):
            assert text.isascii(), (path, text)


def test_names_of_files_are_allowed_everywhere():
    names = [
        path.relative_to(ROOT).as_posix()
        for folder in ("keras_rl2", "callbacks", "tests", "docs", "examples")
        for path in (ROOT / folder).rglob("*")
        if "__pycache__" not in path.parts
    ]
    assert len(names) > 500
    for name in names:
        assert not re.search(r'[<>:"\\|?*]|[. ](/|$)', name), name
        assert not any(map(_RESERVED.match, name.split("/"))), name
        assert len(name) < 150, name
    # macOS and Windows take `a` and `A` for one.
    assert len({name.lower() for name in names}) == len(names)
