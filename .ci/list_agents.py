"""Writes the lists of agents that a program cannot make where they are read.

Those are the imports of `keras_rl2` and of `keras_rl2.agents`, which editors
and type checkers read, the list of the README and the table of
`docs/agents.md`. They are made from the modules of `keras_rl2/agents/` and from
the registry, `keras_rl2/presets/algorithms.py`:

    python .ci/list_agents.py            # after a change
    python .ci/list_agents.py --check    # what a test runs
"""

import argparse
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from keras_rl2.presets.algorithms import ALGORITHMS  # noqa: E402
from keras_rl2.presets.algorithms import Algorithm  # noqa: E402

AGENTS = ROOT / "keras_rl2" / "agents"
# Bases for algorithms of users.
BASES = ("Agent", "OffPolicyAgent", "OnPolicyAgent")
SPACES = ("Discrete", "MultiDiscrete", "MultiBinary", "Box", "Dict, Tuple")


def modules_of_agents() -> dict[str, str]:
    """Returns the modules of all public classes of agents, by their names."""
    found = {}
    for path in sorted(AGENTS.glob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if not isinstance(node, ast.ClassDef):
                continue
            saved = "register_keras" in "".join(
                map(ast.unparse, node.decorator_list)
            )
            if saved or node.name in BASES or node.name in ALGORITHMS:
                found[node.name] = f"keras_rl2.agents.{path.stem}"
    return found


def sorted_names(names: set[str]) -> list[str]:
    """Returns names in the order of the house: constants, classes, others."""

    def key(name: str) -> tuple[int, str]:
        is_class = name[:1].isupper()
        return 0 if name.isupper() else 1 if is_class else 2, name

    return sorted(names, key=key)


def with_imports(text: str, names: dict[str, str], indent: str) -> str:
    """Replaces the imports of agents in the source of a module."""
    line = rf"(?:{indent}from keras_rl2\.agents(?:\.\w+)? import \w+\n)+"
    # As ruff has them: by module, constants before classes.
    order = sorted(sorted_names({*names}), key=names.__getitem__)
    lines = [f"{indent}from {names[name]} import {name}\n" for name in order]
    return re.sub(line, "".join(lines), text, count=1)


def with_all(text: str, names: set[str], gone: set[str]) -> str:
    """Replaces `__all__` in the source of a module.

    Args:
        text: str.
        names: set of str. Names that have to be in it.
        gone: set of str. Names that may be in it, and are taken out.
    """
    found = re.search(r"(?s)__all__ = (\[.*?\])\n", text)
    assert found is not None
    kept = {*ast.literal_eval(found.group(1))} - gone
    lines = "".join(f'    "{each}",\n' for each in sorted_names(kept | names))
    return text.replace(found.group(1), f"[\n{lines}]")


def package(text: str) -> str:
    """Returns the source of `keras_rl2/agents/__init__.py`."""
    modules = modules_of_agents()
    listed = {*re.findall(r"from keras_rl2\.agents\.\w+ import (\w+)", text)}
    text = with_imports(text, modules, "")
    return with_all(text, {*modules}, listed - {*modules})


def top(text: str) -> str:
    """Returns the source of `keras_rl2/__init__.py`."""
    names = {*ALGORITHMS, "Agent"}
    listed = {*re.findall(r"from keras_rl2\.agents import (\w+)", text)}
    text = with_imports(text, dict.fromkeys(names, "keras_rl2.agents"), " " * 4)
    return with_all(text, names, listed - names)


def in_order() -> list[str]:
    """Returns the names of algorithms: on-policy, off-policy, recorded data."""

    def key(name: str) -> int:
        known = ALGORITHMS[name]
        return 2 if known.offline else 0 if known.on_policy else 1

    return sorted(ALGORITHMS, key=key)


def page(name: str) -> str:
    """Returns the file name of the page of an algorithm."""
    return f"{ALGORITHMS[name].page or name.lower()}.md"


def readme(text: str) -> str:
    """Returns the text of the README."""
    links = {
        name: f"[{name}](docs/{page(name)})"
        + f" ({ALGORITHMS[name].note})" * bool(ALGORITHMS[name].note)
        for name in in_order()
    }
    online = [links[n] for n in links if not ALGORITHMS[n].offline]
    offline = [links[n] for n in links if ALGORITHMS[n].offline]
    row = (
        f"| Agents | {', '.join(online)}; from recorded data "
        f"{', '.join(offline)}: [which takes which spaces](docs/agents.md) |\n"
    )
    return re.sub(r"\| Agents \| .*\n", lambda _: row, text)


def row(name: str, known: Algorithm) -> str:
    """Returns the row of an algorithm in the table of `docs/agents.md`."""
    link = f"[`{name}`]({page(name)})" + f" ({known.note})" * bool(known.note)
    source = "recorded data" if known.offline else "replay"
    cells = {
        "agent": link,
        "from": "rollouts" if known.on_policy else source,
        **dict.fromkeys(SPACES, "" if known.actions else "yes"),
        "masks": "yes",
        "memory": "yes" if known.memory is None else "",
    }
    if known.actions is not None:
        cells["Discrete"] = "yes" * ("Discrete" in known.actions)
        cells["Box"] = "finite bounds" * ("Box" in known.actions)
        # Masks are of choices.
        masked = {"Discrete"}.intersection(known.actions)
        for column, kinds in (("masks", masked), ("memory", known.memory)):
            everywhere = {*known.actions} == {*(kinds or ())}
            cells[column] = ("yes" if everywhere else "Discrete") * bool(kinds)
    return (
        "|" + "".join(f" {v} |" if v else " |" for v in cells.values()) + "\n"
    )


def table(text: str) -> str:
    """Returns the text of `docs/agents.md`."""
    rows = "".join(row(name, ALGORITHMS[name]) for name in in_order())
    return re.sub(r"(?:\| \[`.*\n)+", lambda _: rows, text, count=1)


def main() -> int:
    """Writes the lists, or says which are not as they would be written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    stale = False
    for path, written in (
        (AGENTS / "__init__.py", package),
        (ROOT / "keras_rl2" / "__init__.py", top),
        (ROOT / "README.md", readme),
        (ROOT / "docs" / "agents.md", table),
    ):
        text = path.read_text("utf-8")
        new = written(text)
        if new == text:
            continue
        stale = True
        print(f"{path.relative_to(ROOT)}: {'not ' * check}written")
        if not check:
            path.write_text(new, "utf-8")
    return int(check and stale)


if __name__ == "__main__":
    sys.exit(main())
