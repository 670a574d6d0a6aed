"""Docstrings and messages speak with one voice: what ruff cannot check."""

import ast
import functools
import re
from pathlib import Path

import pytest

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


def documented(tree):
    """Yields what has a docstring: node, docstring, and whose arguments."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        if text := ast.get_docstring(node):
            yield node, text, called(node)


def called(node):
    """Returns the function whose arguments a docstring tells of, if any."""
    if isinstance(node, ast.FunctionDef):
        return node
    constructors = [
        each
        for each in node.body
        if isinstance(each, ast.FunctionDef) and each.name == "__init__"
    ]
    return constructors[0] if constructors else None


def is_noun(node):
    """Says whether something is named by what it is, not by what it does."""
    return isinstance(node, ast.ClassDef) or any(
        re.search("property|setter", ast.unparse(each))
        for each in node.decorator_list
    )


def sections(text):
    """Returns what stands under each heading of a docstring."""
    parts = _SECTION.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(text):
    """Returns what `Args` says of each argument."""
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


def first_word(text):
    return re.match(r"\w*", text)[0]


def in_third_person(verb):
    """Returns the forms that a verb may have: makes, does, carries."""
    return {f"{verb}s", f"{verb}es", f"{verb[:-1]}ies"}


@functools.cache
def verbs():
    """Returns the words that functions of this project begin with."""
    return {
        first_word(text)
        for path in MODULES
        for node, text, _ in documented(parsed(path))
        if not is_noun(node) and first_word(text).endswith("s")
    }


def wrong_sentences(tree):
    for node, text, _ in documented(tree):
        if not is_noun(node) and in_third_person(first_word(text)) & verbs():
            yield f"{node.name} begins with {first_word(text)!r}: third person"


def wrong_examples(tree):
    for node, text, _ in documented(tree):
        if "Example" in (found := sections(text)) and not re.match(
            r"\n\n(?=\S)", found["Example"]
        ):
            yield f"{node.name}: no blank line after `Example:`"
        if re.search(r"(?m)^ *(Examples|Arguments|Note|References):$", text):
            yield f"{node.name}: a heading that is not one of ours"


def wrong_defaults(tree):
    for node, text, function in documented(tree):
        if function is None or "Args" not in sections(text):
            continue
        for name, _, default in arguments(function):
            entry = entries(text).get(name)
            if default is None or entry is None or name == _REQUIRED:
                continue
            stated = _DEFAULT.search(entry)
            if stated is None:
                yield f"{node.name}: {name} has a default that is not stated"
            elif not same(stated[1], default):
                code = ast.unparse(default)
                yield f"{node.name}: {name} is {code}, not {stated[1]}"
        if re.search(r"Default(?!s\s+to\s+`)\b", text):
            yield f"{node.name}: write Defaults to `x`."


def wrong_shapes(tree):
    for node, text, function in documented(tree):
        for name, note, _ in arguments(function) if function else ():
            entry = entries(text).get(name)
            if entry is None or not re.match(r"Tensor\b", note or ""):
                continue
            if not _SHAPE.search(entry):
                yield f"{node.name}: {name} is a tensor of no shape"


def wrong_messages(tree):
    for node in ast.walk(tree):
        if not isinstance(node, ast.Raise):
            continue
        text = ast.unparse(node)
        # What says what was received is a message of its own, not a part.
        if re.search(r"""\(f?["']expected .*Received: """, text):
            yield f"line {node.lineno}: begin with 'Expected'"


RULES = [
    wrong_sentences,
    wrong_examples,
    wrong_defaults,
    wrong_shapes,
    wrong_messages,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_one_voice(rule):
    wrong = [
        f"{path.relative_to(ROOT)}: {complaint}"
        for path in MODULES
        for complaint in rule(parsed(path))
    ]
    assert wrong == [], "\n".join(wrong)
