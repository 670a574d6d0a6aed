"""Text that would fail on other operating systems."""

import ast
from pathlib import Path

from support.sources import parsed

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = [
    path
    for folder in ("keras_rl2", "callbacks")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


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
