"""The layout: one top-level package, and `callbacks/` found both ways."""

import ast
import configparser
import re
import runpy
import sys
from pathlib import Path

import pytest

import keras_rl2
from support.processes import printed_by
from support.sources import parsed

ROOT = Path(__file__).resolve().parents[1]
# Names of packages that are not those of their distributions.
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "ai_edge_litert": "ai-edge-litert",
    "ale_py": "ale-py",
}


def _config():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    return config


def test_every_folder_of_the_package_is_found():
    """`find:` takes the folders that have an `__init__.py`."""
    assert _config()["options"]["packages"] == "find:"
    package = ROOT / "keras_rl2"
    folders = {path.parent for path in package.rglob("*.py")}
    assert folders == {path.parent for path in package.rglob("__init__.py")}
    assert (package / "py.typed").is_file()


@pytest.mark.skipif(
    not (ROOT / ".git").exists(), reason="an sdist holds a copy, not a link"
)
def test_callbacks_are_linked_for_checkouts():
    link = ROOT / "keras_rl2" / "callbacks"
    assert link.is_symlink()
    assert str(link.readlink()) == "../callbacks"


def test_callbacks_have_one_identity():
    callback = keras_rl2.callbacks.RolloutRefresh
    assert callback.__module__ == "keras_rl2.callbacks.rollout_refresh"
    folders = (ROOT / "keras_rl2" / "callbacks", ROOT / "callbacks")
    inside, outside = (
        {path.name: path.read_text() for path in folder.glob("*.py")}
        for folder in folders
    )
    assert inside == outside


def test_nothing_named_callbacks_is_on_the_path(tmp_path):
    code = "import importlib.util as u; print(u.find_spec('callbacks'))"
    # Of what is installed: a checkout on PYTHONPATH has it at its root.
    assert printed_by(code, tmp_path, PYTHONPATH="") == "None"


def test_importing_the_package_leaves_tensorflow_out(tmp_path):
    code = (
        "import sys, keras_rl2, keras_rl2.envs, keras_rl2.spaces.supported;"
        "print([m for m in ('tensorflow', 'keras') if m in sys.modules])"
    )
    assert printed_by(code, tmp_path) == "[]"


def _requirements(lines):
    """Returns the names of requirements, without extras and versions."""
    return {re.split(r"[\[<>=~!]", line)[0] for line in lines.split()}


def _imports(statements):
    """Yields the packages that are imported there, other than our own."""
    for node in statements:
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module]
        else:
            continue
        for package in {module.split(".")[0] for module in modules}:
            if package not in {"keras_rl2", *sys.stdlib_module_names}:
                yield _DISTRIBUTIONS.get(package, package)


def test_imports_are_declared():
    """Imports at the top are requirements; later ones may be extras."""
    config = _config()
    required = _requirements(config["options"]["install_requires"])
    extras = set()
    for name, lines in config["options.extras_require"].items():
        if name != "test":
            extras |= _requirements(lines)
    folders = (ROOT / "keras_rl2", ROOT / "callbacks")
    trees = [
        parsed(path) for folder in folders for path in folder.rglob("*.py")
    ]
    at_once = {name for tree in trees for name in _imports(tree.body)}
    sometimes = {name for tree in trees for name in _imports(ast.walk(tree))}
    assert "keras" in at_once
    assert at_once - required == set()
    assert sometimes - required - extras == set()


def test_versions_agree():
    config = _config()
    oldest = config["options"]["python_requires"].removeprefix(">=")
    classifiers = config["metadata"]["classifiers"]
    promised = re.findall(r"Python :: (3\.\d+)", classifiers)
    assert promised[0] == oldest
    assert promised == sorted(promised, key=lambda v: int(v.split(".")[1]))
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {keras_rl2.__version__}\n" in citation


def test_public_names_resolve():
    for name in keras_rl2.__all__:
        assert getattr(keras_rl2, name) is not None
    assert sorted(keras_rl2.__all__) == dir(keras_rl2)
    named = " ".join(keras_rl2._HOMES.values()).split()
    assert {*named} < {*keras_rl2.__all__}
    with pytest.raises(AttributeError, match="no_such_agent"):
        keras_rl2.no_such_agent  # noqa: B018


@pytest.fixture
def build():
    """The definitions of setup.py, which setuptools alone runs."""
    pytest.importorskip("setuptools")
    return runpy.run_path(str(ROOT / "setup.py"))


def test_links_of_the_description_are_absolute_or_words(build):
    readme = (
        "![A curve](docs/a.png) [a](docs/a.md#b), [`e/`](e/README.md)"
        " and [c](https://example.org/c)"
    )
    there = "https://example.org/us/it"
    assert build["description"](readme, there) == (
        f"![A curve]({there}/raw/HEAD/docs/a.png)"
        f" [a]({there}/blob/HEAD/docs/a.md#b),"
        f" [`e/`]({there}/blob/HEAD/e/README.md)"
        " and [c](https://example.org/c)"
    )
    assert build["description"](readme, "") == (
        "A curve a, `e/` and [c](https://example.org/c)"
    )
    # None of the README's is left.
    text = (ROOT / "README.md").read_text("utf-8")
    assert re.search(r"\]\(docs/", text)
    for source in ("", build["source_of"](_config()), "https://example.org"):
        left = re.findall(r"\]\(([^)]*)\)", build["description"](text, source))
        assert [link for link in left if not link.startswith("https:")] == []


def test_the_source_is_that_of_the_project_urls(build):
    config = configparser.ConfigParser()
    assert build["source_of"](config) == ""
    config.read_string(
        "[metadata]\nproject_urls =\n"
        "    Tracker = https://example.org/bugs\n"
        "    Source = https://example.org/us/it/\n"
    )
    assert build["source_of"](config) == "https://example.org/us/it"
