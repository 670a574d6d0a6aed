"""Docstrings in Keras' form, as reStructuredText.

Sphinx reads fields and doubled backticks, where ours have sections, entries
`name: type. Meaning.` and Markdown's code. Names of the library become links.
"""

import re
import textwrap
from collections.abc import Callable
from collections.abc import Iterator

from website import public_names

_HEADING = re.compile(
    r"(?m)^(Args|Attributes|Returns|Yields|Raises|Example|Reference):$"
)
_ENTRY = re.compile(r"(?m)^(\*{0,2}\w[\w.]*): ")
_TITLES = {"Args": "Arguments"}
_LISTS = ("Args", "Attributes", "Raises")
_SPAN = re.compile(r"(?s)(``?)(.+?)\1")
_NAME = re.compile(r"(keras_rl2\.|rl\.)?(?:\w+\.)*(\w+)")
# Of which the address may stand on the next line.
_LINK = re.compile(r"\[([^]]+)\]\(\s*(https?:[^)\s]+)\)")
_PAGE = re.compile(r"\bdocs/(\w+)\.md\b")
# A line of a paragraph that a list follows.
_LIST = re.compile(r"(?m)^((?![ ]|[-*] |\d+\. ).*)\n(?=[-*] |\d+\. )")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def as_rst(text: str, own: str = "") -> str:
    """Returns a docstring as reStructuredText.

    Args:
        text: str. The docstring, without its indentation.
        own: str. The name of what it describes, which is no link there.
            Defaults to `""`.
    """
    first, *rest = _HEADING.split(text)
    parts = [_prose(first, own)]
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        title = _TITLES.get(heading, heading)
        body = textwrap.dedent(body.strip("\n"))
        parts += [f".. rubric:: {title}", _section(heading, body, own)]
    return "\n\n".join(part for part in parts if part)


def _section(heading: str, body: str, own: str) -> str:
    """Returns what stands under a heading."""
    if heading == "Example":
        # What is typed is known by its prompt.
        return "\n\n".join(
            piece if piece.startswith(">>>") else _prose(piece, own)
            for piece in re.split(r"\n\n+", body)
        )
    if heading in _LISTS and _ENTRY.match(body):
        _, *entries = _ENTRY.split(body)
        pairs = zip(entries[::2], entries[1::2], strict=True)
        return "\n\n".join(_entry(*pair, own) for pair in pairs)
    return _prose(body, own)


def _entry(name: str, meaning: str, own: str) -> str:
    """Returns an argument with what is said of it."""
    first, _, rest = meaning.strip().partition("\n")
    text = "\n".join([first, textwrap.dedent(rest)]).strip()
    return f"``{name}``\n{textwrap.indent(_prose(text, own), '    ')}"


def _prose(text: str, own: str) -> str:
    """Returns paragraphs, lists and indented equations."""
    return "\n\n".join(_blocks(text.strip("\n"), own))


def _blocks(text: str, own: str) -> Iterator[str]:
    """Yields the paragraphs of a text, in the other form."""
    after_item = False
    for block in re.split(r"\n\s*\n", text):
        if block.startswith("    ") and not after_item:
            yield "::\n\n" + block
            continue
        block = _LIST.sub(r"\1\n\n", block)
        after_item = bool(_ITEM.match(block)) or block.startswith("  ")
        yield _inline(block, own)


def _inline(text: str, own: str) -> str:
    """Returns a paragraph, its code and links in the other form."""
    return _outside(_LINK, text, _link, lambda rest: _spans(rest, own))


def _link(link: re.Match[str]) -> str:
    """Returns a link, which cannot have code in it."""
    label = " ".join(link[1].replace("`", "").split())
    return _separate(f"`{label} <{link[2]}>`__")


def _spans(text: str, own: str) -> str:
    """Returns a text without links, its code in the other form."""
    return _outside(_SPAN, text, lambda span: _code(span[2], own), _pages)


def _code(code: str, own: str) -> str:
    """Returns code, as a link if it is a name of the library."""
    code = " ".join(code.split())
    name = _NAME.fullmatch(code)
    # A small word alone is an argument more often than it is ours.
    known = name is not None and (name[1] or name[2][0].isupper())
    path = public_names.path_of(name[2]) if name is not None and known else None
    if path is None or path.endswith(f".{own}"):
        return _separate(f"``{code}``")
    return _separate(f":py:obj:`{code} <{path}>`")


def _pages(text: str) -> str:
    """Returns text with links to the pages that it names."""
    return _outside(
        _PAGE, text, lambda page: _separate(f":doc:`/{page[1]}`"), _escaped
    )


def _outside(
    pattern: re.Pattern[str],
    text: str,
    inside: Callable[[re.Match[str]], str],
    outside: Callable[[str], str],
) -> str:
    """Returns a text, changed differently where a pattern matches."""
    pieces, end = [], 0
    for match in pattern.finditer(text):
        pieces += [outside(text[end : match.start()]), inside(match)]
        end = match.end()
    return "".join([*pieces, outside(text[end:])])


def _escaped(text: str) -> str:
    """Returns text in which no character is markup."""
    items = re.sub(r"(?m)^( *)\* ", r"\1- ", text)
    return re.sub(r"([*|\\]|(?<=\w)_(?!\w))", r"\\\1", items)


def _separate(markup: str) -> str:
    """Returns markup that may stand beside letters."""
    return rf"\ {markup}\ "
