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
# Where in the arguments of a function the encoding stands, where not by name.
_ENCODINGS = {"read_text": 0, "write_text": 1, "fdopen": 3, "open": 3}
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def _without_encoding(tree):
    """Yields calls that open text in whatever encoding the system has."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", None))
        if name not in _ENCODINGS or ast.unparse(function) == "os.open":
            continue
        texts = [
            each.value
            for each in [*node.args, *(k.value for k in node.keywords)]
            if isinstance(each, ast.Constant)
        ]
        binary = any(
            isinstance(each, str) and re.fullmatch(r"[rwxa+]*b[rwxa+]*", each)
            for each in texts
        )
        # With the second, it is a member of a ZIP archive: bytes.
        given = any(
            key.arg in ("encoding", "force_zip64") for key in node.keywords
        )
        mode = name in ("open", "fdopen")
        # Of a class of ours or of a package, it is no text.
        opens_text = not mode or any(
            isinstance(each, str) and re.fullmatch(r"[rwxa+]t?\+?", each)
            for each in texts
        )
        if isinstance(function, ast.Name) and name == "open":
            opens_text = True
        elif len(node.args) > _ENCODINGS[name]:
            given = True
        if opens_text and not binary and not given:
            yield ast.unparse(node)


def test_calls_without_an_encoding_are_found():
    code = """
open(path)
open(path, "w")
path.open("a")
path.read_text()
path.write_text(text)
open(path, "rb"), path.open("xb+"), os.open(path, os.O_RDONLY)
open(path, encoding="utf-8"), path.open("w", encoding="ascii")
path.read_text("utf-8"), path.write_text(text, "utf-8"), FileArray.open(path)
"""
    assert [*_without_encoding(ast.parse(code))] == [
        "open(path)",
        "open(path, 'w')",
        "path.open('a')",
        "path.read_text()",
        "path.write_text(text)",
    ]


def test_text_is_opened_with_an_encoding():
    assert len(LIBRARY) > 200
    for path in LIBRARY:
        found = [*_without_encoding(parsed(path))]
        assert not found, path


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


def test_what_is_printed_has_no_letters_that_a_console_may_lack():
    """Windows writes to a pipe or a file in the code page of the country."""
    for path in LIBRARY:
        for text in _printable(parsed(path)):
            assert text.isascii(), (path, text)


def test_windows_allows_all_names_of_files():
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
