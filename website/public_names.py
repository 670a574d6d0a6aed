"""The public names: `__all__` of the package and of its sections.

The sections are those that the package names in its own `__all__`. What has no
name there may change without notice. All is read from the sources, so that
nothing heavy is imported.
"""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "keras_rl2"


@cache
def sections() -> tuple[str, ...]:
    """Returns the names of the sections that the package offers, sorted."""
    return tuple(sorted(filter(_is_section, _all_of(PACKAGE))))


@cache
def names_of(section: str) -> tuple[str, ...]:
    """Returns the public names of a section.

    Args:
        section: str. Its name, e.g. `data`; empty for the package itself.
    """
    found = _all_of(f"{PACKAGE}.{section}" if section else PACKAGE)
    return tuple(name for name in found if section or not _is_section(name))


@cache
def paths() -> dict[str, str]:
    """Returns the public names, each once, by their shortest paths.

    Returns:
        dict: `{"keras_rl2.PPO": "agents"}`, from paths to the sections in whose
        part of the reference they are described; none of what only the
        package has.
    """
    at_the_top = names_of("")
    found: dict[str, str] = {}
    for section in sections():
        for name in names_of(section):
            home = PACKAGE if name in at_the_top else f"{PACKAGE}.{section}"
            found.setdefault(f"{home}.{name}", section)
    return {**{f"{PACKAGE}.{name}": "" for name in at_the_top}, **found}


@cache
def path_of(name: str) -> str | None:
    """Returns the path of a public name, None if it is not one."""
    ends = [path for path in paths() if path.rpartition(".")[2] == name]
    return ends[0] if len(ends) == 1 else None


def home_of(path: str) -> str:
    """Returns the module that a public name is written in.

    Args:
        path: str. As in `paths`.
    """
    module, _, name = path.rpartition(".")
    source = _source(module)
    assert source is not None
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and name in {
            alias.name for alias in node.names
        }:
            return home_of(f"{node.module}.{name}")
    return module


def _is_section(name: str) -> bool:
    """Says whether something in the package is a module."""
    return _source(f"{PACKAGE}.{name}") is not None


def _all_of(module: str) -> list[str]:
    """Returns `__all__` of a module."""
    source = _source(module)
    for node in ast.parse(source.read_text("utf-8")).body if source else ():
        if isinstance(node, ast.Assign) and "__all__" in map(
            ast.unparse, node.targets
        ):
            return list(ast.literal_eval(node.value))
    raise ValueError(f"Expected `__all__` in a section. Received: {module}")


def _source(module: str) -> Path | None:
    """Returns the file of a module, if it is one."""
    path = ROOT.joinpath(*module.split("."))
    files = (path / "__init__.py", path.with_suffix(".py"))
    return next(filter(Path.is_file, files), None)
