"""Gathers the pages of the site in one folder, for Sphinx.

The pages of `docs/` are taken as they are. Texts that lie at the root of the
project and the examples become pages beside them, and the reference is made of
the public names. Links to files of the project become links to their pages;
what is on no page (a test, a folder) is named without a link.
"""

import importlib
import inspect
import os
import re
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path

from website import public_names
from website.contents import CONTENTS
from website.docstrings import as_rst

ROOT = Path(__file__).resolve().parents[1]
TEXTS = {
    "BENCHMARKS.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "examples/README.md": "examples/index.md",
}
# What Keras calls, and no reader.
HOOKS = {
    "build",
    "compile_from_config",
    "from_config",
    "get_compile_config",
    "get_config",
    "load_own_variables",
    "make_train_function",
    "save_own_variables",
}
_BLOCK = re.compile(r"(?ms)^( *)```.*?^\1``` *$")
_LINK = re.compile(r"(!?)\[([^][]*)\]\(([^)\s]+)\)")
# Code that is a name of ours; neither in a link nor in a heading.
_NAME = re.compile(r"(?m)(?<![`\[])(?<!^# )(?<!^## )`rl\.([\w.]+)`(?!`|\]\()")
_COMMENT = re.compile(r"(?s)<!--.*?-->\n?")


def gather(folder: Path) -> None:
    """Writes all pages and pictures into a folder.

    Args:
        folder: path. A new folder.
    """
    shutil.copytree(ROOT / "docs", folder)
    for source, page in _pages().items():
        target = folder / page
        target.parent.mkdir(exist_ok=True)
        path = ROOT / source
        text = path.read_text("utf-8")
        if path.suffix == ".py":
            target.write_text(_example(path.name, text), "utf-8")
        elif page != "index.md" or source.startswith("docs/"):
            target.write_text(with_links_of(text, source, page), "utf-8")
    _append(folder / "index.md", _menu())
    (folder / "reference").mkdir()
    for name, text in reference().items():
        (folder / "reference" / f"{name}.rst").write_text(text, "utf-8")


def with_links_of(text: str, source: str, page: str) -> str:
    """Returns a text with the links that its page has on the site.

    Args:
        text: str. The text, which comments are left out of.
        source: str. Its file, from the root of the project.
        page: str. Its page, from the root of the site.
    """

    def mended(piece: str) -> str:
        piece = _COMMENT.sub("", piece)
        piece = _LINK.sub(lambda link: _mended(link, source, page), piece)
        return _NAME.sub(_named, piece)

    return _outside_code(text, mended)


def _pages() -> dict[str, str]:
    """Returns which page each file of the project becomes, if any."""
    pages = {
        f"docs/{path.name}": path.name for path in (ROOT / "docs").glob("*.md")
    }
    examples = {
        f"examples/{path.name}": f"examples/{path.stem}.md"
        for path in sorted((ROOT / "examples").glob("*.py"))
    }
    return {**TEXTS, **pages, **examples}


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """Returns a text of Markdown, changed where it is no block of code."""
    parts, end = [], 0
    for block in _BLOCK.finditer(text):
        parts += [change(text[end : block.start()]), block[0]]
        end = block.end()
    return "".join([*parts, change(text[end:])])


def _mended(link: re.Match[str], source: str, page: str) -> str:
    """Returns a link as it is written in a page of the site."""
    picture, label, target = link.groups()
    if re.match(r"[a-z]+:|#", target):
        return link[0]
    file, hash_, anchor = target.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(source), file))
    beginning = os.path.dirname(page) or "."
    if path in _pages():
        relative = os.path.relpath(_pages()[path], beginning)
    elif path.startswith("docs/"):
        relative = os.path.relpath(path.removeprefix("docs/"), beginning)
    else:
        return label
    return f"{picture}[{label}]({relative}{hash_}{anchor})"


def _named(found: re.Match[str]) -> str:
    """Returns the code of a public name as a link to the reference."""
    module, _, name = found[1].rpartition(".")
    for path in (f"keras_rl2.{name}", f"keras_rl2.{module}.{name}"):
        if path in public_names.paths() and (
            module in ("", public_names.paths()[path])
        ):
            return f"{{py:obj}}`rl.{found[1]} <{path}>`"
    return found[0]


def _example(name: str, source: str) -> str:
    """Returns the page of an example."""
    return f"---\norphan: true\n---\n# {name}\n\n```python\n{source}```\n"


def _append(path: Path, text: str) -> None:
    path.write_text(path.read_text("utf-8") + text, "utf-8")


def _menu() -> str:
    """Returns what tells Sphinx the order of the pages."""
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n"
        + "\n".join(pages)
        + "\n```\n"
        for title, pages in CONTENTS.items()
    )


def reference() -> dict[str, str]:
    """Returns the pages of the reference by their names."""
    sections = ("", *public_names.sections())
    names = {section: _described_in(section) for section in sections}
    pages = {
        section or "keras_rl2": _page_of(section, paths)
        for section, paths in names.items()
    }
    return {"index": _overview(names), **pages}


def _described_in(section: str) -> list[str]:
    """Returns the paths of the names that are described with a section."""
    return [
        path for path, home in public_names.paths().items() if home == section
    ]


def _title(section: str) -> str:
    return f"rl.{section}" if section else "rl"


def _overview(names: dict[str, list[str]]) -> str:
    """Returns the page that lists all names."""
    parts = [
        _heading("Reference"),
        "Names begin with ``rl``, of ``import keras_rl2 as rl``. What stands "
        "here is public: it is in ``__all__`` of the package or of one of its "
        "sections. Everything else may change without notice.",
        ".. toctree::\n   :hidden:\n\n"
        + "\n".join(f"   {section or 'keras_rl2'}" for section in names),
    ]
    for section, paths in names.items():
        page = section or "keras_rl2"
        parts += [
            _heading(f":doc:`{_title(section)} <{page}>`", "-"),
            _table(paths),
        ]
    return "\n\n".join(parts) + "\n"


def _page_of(section: str, paths: list[str]) -> str:
    """Returns the page of a section, with all that it offers."""
    module = f"keras_rl2.{section}" if section else "keras_rl2"
    parts = [
        _heading(f"{_title(section)}"),
        f".. automodule:: {module}\n   :no-members:",
        _table(paths),
        *map(_entry, paths),
    ]
    return "\n\n".join(parts) + "\n"


def _entry(path: str) -> str:
    """Returns what makes Sphinx describe a name.

    What has no docstring of its own is described by that of its module.
    """
    thing = _thing(path)
    if inspect.isclass(thing):
        derived = thing.__bases__ != (object,)
        left_out = sorted(HOOKS | _described_above(thing))
        return "\n".join(
            [
                f".. autoclass:: {path}",
                *(["   :show-inheritance:"] if derived else []),
                f"   :exclude-members: {', '.join(left_out)}",
            ]
        )
    if inspect.isfunction(thing):
        return f".. autofunction:: {path}"
    text = as_rst(docstring(path), path.rpartition(".")[2])
    module, _, name = path.rpartition(".")
    head = f".. py:data:: {name}\n   :module: {module}"
    return f"{head}\n\n{textwrap.indent(text, '   ')}"


def _described_above(thing: type) -> set[str]:
    """Returns the members that a base of the library has, too."""
    bases = [
        base
        for base in thing.__mro__[1:]
        if base.__module__.partition(".")[0] == public_names.PACKAGE
    ]
    return {name for name in vars(thing) if any(name in vars(b) for b in bases)}


def docstring(path: str) -> str:
    """Returns the docstring that describes a name."""
    thing = _thing(path)
    if not inspect.isclass(thing) and not inspect.isfunction(thing):
        thing = importlib.import_module(public_names.home_of(path))
    return inspect.getdoc(thing) or ""


def _thing(path: str) -> object:
    """Returns what a path leads to."""
    module, _, name = path.rpartition(".")
    thing: object = getattr(importlib.import_module(module), name)
    return thing


def _last_word(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _heading(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}"


def _table(paths: list[str]) -> str:
    """Returns the names with the first sentence of each."""
    rows = []
    for path in sorted(paths, key=_last_word):
        first = as_rst(docstring(path).split("\n\n")[0])
        shown = path.replace("keras_rl2", "rl", 1)
        rows += [
            f"   * - :py:obj:`{shown} <{path}>`",
            "     - " + first.replace("\n", " "),
        ]
    return "\n".join(
        [".. list-table::", "   :class: names", "   :widths: 1 2", "", *rows]
    )
