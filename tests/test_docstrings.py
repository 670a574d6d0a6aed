"""Docstrings and messages have one form, which ruff cannot check."""

import ast
import functools
import re
from pathlib import Path

from support.sources import parsed

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(
    [*(ROOT / "callbacks").glob("*.py")]
    + [
        path
        for path in (ROOT / "keras_rl2").rglob("*.py")
        if path.parent != ROOT / "keras_rl2" / "callbacks"
    ]
)
_SECTION = re.compile(
    r"(?m)^(Args|Attributes|Returns|Yields|Raises|Example|Reference):$"
)
_ENTRY = re.compile(r"(?m)^    (\*{0,2}\w+): ")
_DEFAULT = re.compile(r"Defaults\s+to\s+`([^`]*)`")
# It has a default in Keras' signature of `fit` and `evaluate` only.
_REQUIRED = "x"
_SHAPE = re.compile(r"`\[.*?\]`|scalar")


@functools.cache
def documented():
    """Returns the documented objects: place, node, text, owner of arguments."""
    return [
        (f"{path.relative_to(ROOT)}: {node.name}", node, text, called(node))
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and (text := ast.get_docstring(node))
    ]


def called(node):
    """Returns the function whose arguments a docstring tells of, if any."""
    if isinstance(node, ast.FunctionDef):
        return node
    made = [n for n in node.body if getattr(n, "name", "") == "__init__"]
    return made[0] if made else None


def is_noun(node):
    """Returns whether a text names an object, and not an action."""
    return isinstance(node, ast.ClassDef) or any(
        re.search("property|setter", ast.unparse(each))
        for each in node.decorator_list
    )


def sections(text):
    """Returns the text under each heading of a docstring."""
    parts = _SECTION.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(text):
    """Returns the text of `Args` for each argument."""
    parts = _ENTRY.split(sections(text).get("Args", ""))
    names = [name.lstrip("*") for name in parts[1::2]]
    return dict(zip(names, parts[2::2], strict=True))


def arguments(function):
    """Yields the name, annotation and default of each argument."""
    signature = function.args
    positional = signature.posonlyargs + signature.args
    missing = [None] * (len(positional) - len(signature.defaults))
    pairs = [
        *zip(positional, missing + signature.defaults, strict=True),
        *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
        *((each, None) for each in (signature.vararg, signature.kwarg) if each),
    ]
    for argument, default in pairs:
        note = argument.annotation and ast.unparse(argument.annotation)
        yield argument.arg, note, default


def same(written, default):
    """Says whether a docstring states the default that the code has."""
    try:
        value = ast.literal_eval(default)
    except ValueError:
        return True  # a name, which the docstring may spell out
    try:
        stated = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return False
    return (type(stated), stated) == (type(value), value)


def test_functions_begin_with_a_verb_in_the_third_person():
    first = {
        place: re.match(r"\w*", text)[0]
        for place, node, text, _ in documented()
        if not is_noun(node)
    }
    verbs = {word for word in first.values() if word.endswith("s")}
    wrong = [
        f"{place} begins with {word!r}"
        for place, word in first.items()
        # makes, does, carries
        if {f"{word}s", f"{word}es", f"{word[:-1]}ies"} & verbs
    ]
    assert wrong == []


def test_headings_are_those_of_keras():
    wrong = [
        place
        for place, _, text, _ in documented()
        if re.search(r"(?m)^ *(Examples|Arguments|Note|References):$", text)
        or not re.match(r"\n\n(?=\S)", sections(text).get("Example", "\n\n."))
    ]
    assert wrong == []


def test_defaults_are_those_of_the_code():
    wrong = []
    for place, _, text, function in documented():
        if function is None or "Args" not in sections(text):
            continue
        for name, _, default in arguments(function):
            entry = entries(text).get(name)
            if default is None or entry is None or name == _REQUIRED:
                continue
            stated = _DEFAULT.search(entry)
            if stated is None or not same(stated[1], default):
                wrong.append(f"{place}: {name} is {ast.unparse(default)}")
        if re.search(r"Default(?!s\s+to\s+`)\b", text):
            wrong.append(f"{place}: write Defaults to `x`.")
    assert wrong == []


def test_tensors_have_shapes():
    wrong = [
        f"{place}: {name}"
        for place, _, text, function in documented()
        for name, note, _ in (arguments(function) if function else ())
        if (entry := entries(text).get(name)) is not None
        and re.match(r"Tensor\b", note or "")
        and not _SHAPE.search(entry)
    ]
    assert wrong == []


def test_messages_begin_with_expected():
    # What says what was received is a message of its own, not a part.
    part = re.compile(r"""\(f?["']expected .*Received: """)
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Raise) and part.search(ast.unparse(node))
    ]
    assert wrong == []
