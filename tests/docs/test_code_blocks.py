"""The code blocks of the pages run.

A page is a program: its blocks of Python run from the top to the bottom, as
one module. HTML comments right before a block hold the marks that a reader does
not see, each in one of its own:

    <!-- run first:
    CODE
    -->
        CODE is run before the block, for example the imports of a fragment.
    <!-- run with: "MyEnv-v0" => "CartPole-v1" -->
        The block is run with the one text for the other.
    <!-- starts anew -->
        The block begins another program.
    <!-- raises: ValueError -->
        The block ends with that error.
    <!-- needs: ray -->
        The block, and the rest of its program, is run only where that
        package is installed.
    <!-- not run: cluster: why -->
        The block is read, but not run; the first word is one of `REASONS`.

Pages train for as long as a user would. The tests check the effect of each
line, not the learned returns: numbers of steps, epochs and episodes in the code
are lowered to those of `SHORT`. One page:

    python -m pytest -m slow -n 0 -k saving tests/docs/test_code_blocks.py
"""

import ast
import builtins
import doctest
import importlib.util
import re
import shlex
import sys
import textwrap
import types
from dataclasses import dataclass
from pathlib import Path

import pytest

from keras_rl2.cli.parser import make_parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*.md"),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
    ]
)
# Why a block may not be run: machines, hours or programs that are not there.
REASONS = ("cluster", "GPU", "hours", "download", "theirs")
MARKS = (
    "run first",
    "run with",
    "starts anew",
    "raises",
    "needs",
    "not run",
)
MOST_NOT_RUN = 12
# The most that is asked for by arguments of these names.
SHORT = {
    # More than the steps before the first update, where no `warm_up` is said.
    "total_steps": 1200,
    "epochs": 2,
    "episodes": 2,
    "warm_up": 100,
    "rounds_per_epoch": 4,
    "updates_per_epoch": 20,
    "updates": 20,
}
RECORDED = 1000
_FENCE = re.compile(r"(?ms)^( *)```(\w*)[^\n]*\n(.*?)^\1``` *$")
_COMMENT = re.compile(r"(?s)<!--(?:(?!-->).)*-->\s*\Z")
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        language: str. The word after its fence, or nothing.
        code: str. The text between its fences.
        line: int. The line of the page that the code begins with.
        marks: Pairs of a word of `MARKS` and the text after it.
    """

    language: str
    code: str
    line: int
    marks: tuple[tuple[str, str], ...]

    def marked(self, mark):
        """Returns the texts of the marks of a kind."""
        return [text for kind, text in self.marks if kind == mark]


def blocks(text):
    """Yields the blocks of a page."""
    for fence in _FENCE.finditer(text):
        yield Block(
            fence[2],
            textwrap.dedent(fence[3]),
            text[: fence.start()].count("\n") + 2,
            _marks(text[: fence.start()]),
        )


def _marks(before):
    """Returns the marks that a text ends with, in their order."""
    found = []
    while comment := _COMMENT.search(before):
        before = before[: comment.start()]
        text = comment[0].strip().removeprefix("<!--").removesuffix("-->")
        mark, _, rest = text.partition(":")
        found.append((mark.strip(), textwrap.dedent(rest).strip(" ")))
    return tuple(reversed(found))


def run(path, monkeypatch):
    """Runs the blocks of a page.

    Args:
        path: The page.
        monkeypatch: pytest's, for the module that the page is.

    Returns:
        list of str: packages that were missing for some of it.
    """
    missing = set()
    module, left_out = None, False
    for block in blocks(path.read_text("utf-8")):
        if block.language != "python" or block.marked("not run"):
            continue
        if module is None or block.marked("starts anew"):
            module, left_out = _new_module(monkeypatch), False
        absent = {
            name
            for name in block.marked("needs")
            if importlib.util.find_spec(name.strip()) is None
        }
        missing |= absent
        left_out = left_out or bool(absent)
        if not left_out:
            _run(block, path, vars(module))
    return sorted(missing)


def _new_module(monkeypatch):
    """Returns the main module, which holds the names of a page."""
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return module


def _run(block, path, names):
    """Runs a block as its marks prescribe."""
    for text in block.marked("run first"):
        _execute(textwrap.dedent(text), block.line - 1, path, names)
    code = substituted(block)
    expected = block.marked("raises")
    if not expected:
        _execute(code, block.line, path, names)
    for name in expected:
        with pytest.raises(getattr(builtins, name.strip())):
            _execute(code, block.line, path, names)


def substituted(block):
    """Returns the code of a block as it is run."""
    code = block.code
    for each in block.marked("run with"):
        shown, arrow, run_with = (x.strip() for x in each.partition("=>"))
        if not arrow or shown not in code:
            raise AssertionError(f"line {block.line}: no {each!r} there")
        code = code.replace(shown, run_with)
    return code


def _execute(code, line, path, names):
    """Runs code, with the numbers of lines that it has in its page."""
    if code.lstrip().startswith(">>>"):
        _compare(code, line, path, names)
        return
    tree = ast.parse("\n" * (line - 1) + code, str(path))
    shorten(tree)
    exec(compile(tree, str(path), "exec"), names)


def shorten(tree):
    """Lowers the numbers that calls ask for to those of `SHORT`."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        asked = [
            (each.value, SHORT[each.arg])
            for each in call.keywords
            if each.arg in SHORT
        ]
        if ast.unparse(call.func) == "rl.record":
            asked.append((call.args[2], RECORDED))
        for number, most in asked:
            if isinstance(number, ast.Constant) and number.value:
                number.value = min(number.value, most)


def _compare(code, line, path, names):
    """Runs the lines of a prompt, and compares the output."""
    parser = doctest.DocTestParser()
    test = parser.get_doctest(code, {}, path.name, str(path), line - 1)
    test.globs = names
    told = []
    runner = doctest.DocTestRunner(optionflags=_FLAGS)
    runner.run(test, out=told.append, clear_globs=False)
    assert not runner.failures, "".join(told)


def parsed(block):
    """Returns the tree of a block of Python; a SyntaxError says where."""
    code = block.code
    if code.lstrip().startswith(">>>"):
        examples = doctest.DocTestParser().get_examples(code)
        code = "".join(example.source for example in examples)
    return ast.parse(code)


def commands(block):
    """Yields the lines of a block that are typed into a shell."""
    if block.language == "python":
        return
    for line in block.code.replace("\\\n", " ").splitlines():
        line = line.strip().removeprefix("$ ")
        if re.match(r"(keras-rl2|python) ", line):
            yield line


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def all_blocks():
    """Yields each block of each page, and where it stands."""
    for path in PAGES:
        for block in blocks(path.read_text("utf-8")):
            yield f"{name_of(path)}, line {block.line}", block


def runs(path):
    return any(
        block.language == "python" and not block.marked("not run")
        for block in blocks(path.read_text("utf-8"))
    )


def test_all_python_is_python():
    count = 0
    for place, block in all_blocks():
        if block.language == "python":
            count += 1
            assert parsed(block).body, place
            continue
        # Under another name it would not be run.
        assert block.language not in ("py", "pycon", "Python", "python3"), place
        prompt = block.code.startswith((">>> ", "import ", "from "))
        assert block.language or not prompt, place
    assert count > 40


def test_marks_are_known_and_few_blocks_are_not_run():
    not_run = []
    for place, block in all_blocks():
        for mark, _ in block.marks:
            assert mark in MARKS, place
        assert substituted(block), place
        for reason in block.marked("not run"):
            kind, _, why = reason.partition(":")
            assert kind.strip() in REASONS, place
            assert len(why.split()) > 2, place
            if kind.strip() != "theirs":
                not_run.append(place)
    assert len(not_run) <= MOST_NOT_RUN, not_run


def test_commands_are_taken():
    """The parser takes commands of `keras-rl2`; files of others exist."""
    for place, block in all_blocks():
        for line in commands(block):
            words = shlex.split(line, comments=True)
            if words[0] == "keras-rl2":
                wanted = make_parser().parse_args(words[1:])
                assert wanted.command, place
            elif words[1].startswith(("examples/", "tests/", "docs/")):
                assert (ROOT / words[1]).exists(), place


@pytest.mark.slow
@pytest.mark.parametrize("path", list(filter(runs, PAGES)), ids=name_of)
def test_a_page_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    missing = run(path, monkeypatch)
    if missing:
        pytest.skip(f"the rest ran; some needs {', '.join(missing)}")
