"""Pastes what is said of an argument to all places where it is looked up.

Each argument is described once, in the docstring of the base that takes it
first. From there this script copies the words to the docstrings of subclasses,
whose own default it writes into them, and makes the `for_env` of each agent
from the arguments of its constructor. An argument that differs from that of the
bases on purpose has a comment in its line: `# own default`, `# own words`, or
`# own default, words`.

    python .ci/paste_arguments.py            # after a change
    python .ci/paste_arguments.py --check    # what a test runs

It reads and writes source only, and imports nothing of the library.
"""

import argparse
import ast
import dataclasses
import functools
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "agents",
    "data",
    "networks",
    "offline",
    "policies",
    "replay",
    "runs",
)
# Where words come from, if not from the bases in their order.
SOURCES = {
    "BoxCQL": ("SAC", "CQL"),
    "CQL": ("DQN", "SAC"),
    "DiscreteCQL": ("DQN", "CQL"),
    "Agent.evaluate": ("EvaluationDataset",),
    "EvaluationDataset": ("CollectingDataset",),
    "EvaluationDataset.of": ("EvaluationDataset",),
    "ActingModel.check_export": ("EvaluationDataset",),
    "CrossQ.compile": ("TD3.compile", "Agent.compile"),
    "TD3.compile": ("Agent.compile",),
    "Training.run": ("Agent.fit",),
    "PrioritizedReplayBuffer": ("ReplayBuffer",),
    "ReplayDataset": ("CollectingDataset",),
    "RolloutDataset": ("CollectingDataset",),
    "network_for": ("mlp",),
    "record": ("OfflineDataset",),
}
# Bases of agents; they have no networks for `for_env`.
BASES = ("Agent", "OffPolicyAgent", "OnPolicyAgent", "StochasticActor")
# Agents that users make, by the list that `list_agents.py` writes.
AGENTS = frozenset(
    re.findall(
        r"(?m)^from keras_rl2\.agents\.\w+ import (\w+)$",
        (ROOT / "keras_rl2" / "agents" / "__init__.py").read_text("utf-8"),
    )
).difference(BASES)
# What `for_env` finds out itself.
MADE = (
    *("actor", "critic", "networks", "q_network", "value_network"),
    *("observation_space", "action_space"),
)
# What a module with a `for_env` imports for it.
IMPORTS = (
    "from collections.abc import Sequence",
    "from typing import Literal",
    "from typing import Self",
    "from keras_rl2.agents.agent import as_given",
    "from keras_rl2.envs.vector_env import GivenEnv",
)
# After the hyper-parameters, in all signatures.
LAST = ("seed", "name", "dtype")

_ENTRY = re.compile(r"(?m)^ {4}(\*{0,2}\w+): ")
_HEADING = re.compile(
    r"(?m)^(?=(?:Attributes|Returns|Yields|Raises|Example|Reference):$)"
)
_DEFAULT = re.compile(r"Defaults\s+to\s+`[^`]*`")


@dataclasses.dataclass
class Argument:
    """An argument of a signature, as it is written there.

    Args:
        name: str.
        source: str. With its annotation and default.
        default: str or None. As docstrings write it.
        own: str. Comment of its line: `# own default, words`, or one of the
            two, where they differ from those of its bases on purpose.
    """

    name: str
    source: str
    default: str | None
    own: str


@dataclasses.dataclass
class Place:
    """A docstring with the arguments that it tells of.

    Args:
        path: Path of the module.
        node: The class or function.
        called: The function whose arguments they are.
        sources: tuple of str. Names of the places that words come from.
    """

    path: Path
    node: ast.ClassDef | ast.FunctionDef
    called: ast.FunctionDef
    sources: tuple[str, ...]

    @property
    def bases(self) -> tuple[str, ...]:
        """Names of the bases of a class."""
        given = self.node.bases if isinstance(self.node, ast.ClassDef) else []
        return tuple(each.id for each in given if isinstance(each, ast.Name))

    @functools.cached_property
    def text(self) -> str:
        """The source of the module."""
        return self.path.read_text("utf-8")

    @functools.cached_property
    def arguments(self) -> dict[str, Argument]:
        """All arguments but `self` and `cls`, in their order."""
        given = self.called.args
        positional = given.posonlyargs + given.args
        missing = [None] * (len(positional) - len(given.defaults))
        pairs = [*zip(positional, missing + given.defaults, strict=True)]
        if given.vararg:
            pairs.append((given.vararg, None))
        pairs += zip(given.kwonlyargs, given.kw_defaults, strict=True)
        return {
            each.arg: Argument(
                each.arg,
                self._source(each, value),
                said(value),
                self._comment(value or each),
            )
            for each, value in pairs
            if each.arg not in ("self", "cls")
        }

    def _source(self, argument: ast.arg, default: ast.expr | None) -> str:
        """Returns an argument as it is written in the signature."""
        text = ast.get_source_segment(self.text, argument) or ""
        if default is None:
            return text
        last = default.end_lineno, default.end_col_offset
        lines = self.text.encode().splitlines()[argument.lineno - 1 : last[0]]
        lines[-1] = lines[-1][: last[1]]
        lines[0] = lines[0][argument.col_offset :]
        return b"\n".join(lines).decode()

    def _comment(self, last: ast.expr | ast.arg) -> str:
        """Returns the comment after the last part of an argument."""
        line = self.text.splitlines()[(last.end_lineno or 0) - 1]
        return line.partition("  # own ")[2]

    @functools.cached_property
    def docstring(self) -> str:
        """The docstring, without its indentation."""
        return ast.get_docstring(self.node) or ""

    @functools.cached_property
    def parts(self) -> tuple[str, str, str]:
        """What stands before the entries of `Args`, they, and the rest."""
        if "\nArgs:\n" not in self.docstring:
            headings = _HEADING.split(self.docstring, maxsplit=1)
            return headings[0].rstrip(), "", "".join(headings[1:])
        before, after = self.docstring.split("\nArgs:\n", maxsplit=1)
        entries, *rest = _HEADING.split(after, maxsplit=1)
        return before.rstrip(), entries, "".join(rest)

    @functools.cached_property
    def words(self) -> dict[str, str]:
        """What the docstring says of each argument, in one line."""
        parts = _ENTRY.split(self.parts[1])
        texts = (" ".join(each.split()) for each in parts[2::2])
        names = (name.lstrip("*") for name in parts[1::2])
        return dict(zip(names, texts, strict=True))


def said(default: ast.expr | None) -> str | None:
    """Returns a default as docstrings write it."""
    if isinstance(default, ast.Constant) and isinstance(default.value, str):
        return f'"{default.value}"'
    if (
        isinstance(default, ast.Constant)
        and isinstance(default.value, int)
        and default.value >= 10_000
    ):
        return f"{default.value:_}"
    return None if default is None else ast.unparse(default)


def places() -> dict[str, Place]:
    """Returns all classes with a constructor, and methods, by their names."""
    found: dict[str, Place] = {}
    for room in ROOMS:
        at = ROOT / "keras_rl2" / room
        for path in sorted(at.rglob("*.py")) if at.is_dir() else [at]:
            for node in ast.parse(path.read_text("utf-8")).body:
                found.update(_places_of(path, node))
    return found


def _places_of(path: Path, node: ast.stmt) -> Iterator[tuple[str, Place]]:
    """Yields the places of a statement of a module."""
    if isinstance(node, ast.FunctionDef):
        yield node.name, Place(path, node, node, SOURCES.get(node.name, ()))
    if not isinstance(node, ast.ClassDef):
        return
    constructor = ast.parse("def __init__(self): ...").body[0]
    for each in node.body:
        if isinstance(each, ast.FunctionDef):
            name = f"{node.name}.{each.name}"
            yield name, Place(path, each, each, SOURCES.get(name, ()))
            if each.name == "__init__":
                constructor = each
    assert isinstance(constructor, ast.FunctionDef)
    place = Place(path, node, constructor, ())
    sources = SOURCES.get(node.name, place.bases)
    yield node.name, dataclasses.replace(place, sources=sources)


def inherited(known: dict[str, Place], name: str, argument: str) -> str | None:
    """Returns what the sources of a place say of an argument, if anything."""
    for source in known[name].sources:
        if source in known:
            words = words_for(known, source, argument)
            if words is not None:
                return words
    return None


def words_for(known: dict[str, Place], name: str, argument: str) -> str | None:
    """Returns what is to be said of an argument at a place.

    Args:
        known: dict from names to places.
        name: str. Of the place.
        argument: str.

    Returns:
        str, with the default that the argument has there; None where neither
        the place nor its sources have such an argument.
    """
    place = known[name]
    words = inherited(known, name, argument)
    taken = place.arguments.get(argument)
    if taken is None:
        return words
    if words is None or "words" in taken.own:
        words = place.words.get(argument)
    return words and with_default(words, taken.default)


def with_default(words: str, default: str | None) -> str:
    """Writes the default of a signature into what is said of an argument."""
    if default is None:
        return re.sub(r" Defaults to `[^`]*`\.", "", words)
    if default.isupper():
        return words  # a constant, which only words can say
    if not _DEFAULT.search(words):
        return f"{words} Defaults to `{default}`."
    return _DEFAULT.sub(lambda _: f"Defaults to `{default}`", words)


def other_defaults(known: dict[str, Place]) -> Iterator[str]:
    """Yields what to say of defaults that differ from those of bases."""
    for name in filter(is_pasted, known):
        for argument, taken in known[name].arguments.items():
            found = default_of(known, name, argument)
            if found is None or "default" in taken.own:
                continue
            source, default = found
            if default != taken.default and default is not None:
                yield (
                    f"{name}: {argument} is {taken.default}, {default} in "
                    f"{source}. Make them alike, or write `# own default`"
                )


def default_of(
    known: dict[str, Place], name: str, argument: str
) -> tuple[str, str | None] | None:
    """Returns the first source that has an argument, and its default."""
    for source in known[name].sources:
        if source not in known:
            continue
        if argument in known[source].arguments:
            return source, known[source].arguments[argument].default
        if found := default_of(known, source, argument):
            return found
    return None


def entries(words: dict[str, str], indent: str) -> str:
    """Returns the section `Args` of a docstring, in short lines."""
    lines = [f"{indent}Args:"]
    for name, text in words.items():
        lines += textwrap.wrap(
            f"{name}: {text}",
            79,
            initial_indent=f"{indent}    ",
            subsequent_indent=f"{indent}        ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def said_at(known: dict[str, Place], name: str) -> dict[str, str]:
    """Returns what is to be said of all arguments of a place.

    Raises:
        SystemExit: If nothing is said of one of them.
    """
    place = known[name]
    said = {each: words_for(known, name, each) for each in place.arguments}
    silent = [each for each, words in said.items() if words is None]
    if silent:
        sys.exit(f"{place.path}: {name} has no words for {silent}")
    stars = {place.called.args.vararg.arg} if place.called.args.vararg else ()
    return {
        f"*{each}" if each in stars else each: words or ""
        for each, words in said.items()
    }


def docstring(place: Place, words: dict[str, str]) -> str:
    """Returns the lines of a docstring, with other words for its arguments."""
    indent = " " * (place.node.col_offset + 4)
    before, _, after = place.parts
    blocks = [textwrap.indent(before, indent), entries(words, indent)]
    if after:
        blocks.append(textwrap.indent(after, indent))
    text = "\n\n".join(blocks).strip()
    return f'{indent}"""{text}\n{indent}"""'


def for_env(known: dict[str, Place], name: str) -> str:
    """Returns the source of the `for_env` of an agent."""
    base, kind = known["Agent.for_env"], known[name]
    hyper = {
        each: taken
        for each, taken in kind.arguments.items()
        if each not in (*MADE, *LAST)
    }
    own = {k: v for k, v in base.arguments.items() if k not in (*LAST, "env")}
    last = {each: base.arguments[each] for each in LAST}
    keyword_only = {**own, **hyper, **last}
    lines = [each.source for each in keyword_only.values()]
    said = {**said_at(known, "Agent.for_env")}
    words = {
        each: said_at(known, name)[each] if each in hyper else said[each]
        for each in ("env", *keyword_only)
    }
    narrower = any(
        {*known[each].arguments} - {*kind.arguments}
        for each in kind.bases
        if each in AGENTS
    )
    ignored = "  # type: ignore[override]" if narrower else ""
    signature = "".join(f"        {each},\n" for each in lines)
    return (
        "    @classmethod\n    @as_given\n"
        f"    def for_env({ignored}\n        cls,\n        env: GivenEnv,\n"
        f"        *,\n{signature}    ) -> Self:\n"
        f"{docstring(base, words)}\n        raise NotImplementedError\n"
    )


def replaced(place: Place, lines: list[str], known: dict[str, Place]) -> None:
    """Puts the docstring of a place into the lines of its module."""
    name = next(key for key, each in known.items() if each is place)
    first = place.node.body[0]
    assert first.end_lineno is not None
    new = docstring(place, said_at(known, name))
    lines[first.lineno - 1 : first.end_lineno] = new.split("\n")


def put_for_env(name: str, lines: list[str], known: dict[str, Place]) -> None:
    """Puts the `for_env` of an agent after its constructor."""
    new = for_env(known, name).rstrip("\n").split("\n")
    old = known.get(f"{name}.for_env")
    if old is None:
        end = known[name].called.end_lineno or 0
        lines[end:end] = ["", *new]
        return
    begin = min(each.lineno for each in old.node.decorator_list)  # type: ignore
    lines[begin - 1 : old.node.end_lineno] = new


def pasted() -> dict[Path, str]:
    """Returns the sources of all modules as they are to be."""
    known = places()
    texts: dict[Path, str] = {}
    names = [*filter(is_pasted, known)]
    for path in {known[name].path for name in names}:
        here = [name for name in names if known[name].path == path]
        lines = path.read_text("utf-8").split("\n")
        # From below, so that lines above stay where they are.
        for name in sorted(here, key=lambda each: -known[each].node.lineno):
            if name in AGENTS:
                put_for_env(name, lines, known)
            replaced(known[name], lines, known)
        if AGENTS.intersection(here):
            first = next(
                i for i, each in enumerate(lines) if " import " in each
            )
            # Of a new agent, which `ruff check --fix` puts into order.
            lines[first:first] = [e for e in IMPORTS if e not in lines]
        texts[path] = "\n".join(lines)
    return texts


def is_pasted(name: str) -> bool:
    """Says whether a place has words of another one."""
    return name in SOURCES or name in AGENTS or name in BASES[1:]


def main() -> int:
    """Pastes, or says what is not as it was pasted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    wrong = [*other_defaults(places())]
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    stale = False
    for path, text in sorted(pasted().items()):
        if text == path.read_text("utf-8"):
            continue
        stale = True
        print(f"{path.relative_to(ROOT)}: {'not ' * check}pasted")
        if not check:
            path.write_text(text, "utf-8")
    return int(bool(wrong) or (check and stale))


if __name__ == "__main__":
    sys.exit(main())
