"""Every public name is in the reference, with an example that runs."""

import doctest
import importlib
import inspect
import re

import keras_rl2
from website import pages
from website import public_names
from website.contents import CONTENTS


def described(text):
    """Returns the paths that a page of the reference describes."""
    named = re.findall(r"(?m)^\.\. auto\w+:: (\S+)$", text)
    data = re.findall(r"(?m)^\.\. py:data:: (\w+)\n   :module: (\S+)$", text)
    modules = {f"keras_rl2.{section}" for section in public_names.sections()}
    modules.add("keras_rl2")
    return [
        *(path for path in named if path not in modules),
        *(f"{module}.{name}" for name, module in data),
    ]


def examples(path):
    return doctest.DocTestParser().get_examples(pages.docstring(path))


def test_public_names_are_what_the_modules_say():
    """They are read from the sources; this is what is imported."""
    sections = [
        name
        for name in keras_rl2.__all__
        if inspect.ismodule(getattr(keras_rl2, name))
    ]
    assert sorted(sections) == list(public_names.sections())
    offered = {f"keras_rl2.{n}" for n in keras_rl2.__all__ if n not in sections}
    for section in sections:
        module = importlib.import_module(f"keras_rl2.{section}")
        for name in module.__all__:
            at_the_top = name in keras_rl2.__all__
            home = "keras_rl2" if at_the_top else module.__name__
            offered.add(f"{home}.{name}")
    assert set(public_names.paths()) == offered


def test_public_names_are_in_the_reference_once():
    found = [
        path for text in pages.reference().values() for path in described(text)
    ]
    assert sorted(found) == sorted(public_names.paths())


def test_public_names_have_an_example_that_is_run():
    missing = [
        path
        for path in public_names.paths()
        if "\nExample:\n\n" not in pages.docstring(path)
        or not examples(path)
        or any(each.options.get(doctest.SKIP, False) for each in examples(path))
    ]
    assert missing == []


def test_every_page_is_in_the_menu_and_no_other():
    listed = [name for names in CONTENTS.values() for name in names]
    texts = {page.removesuffix(".md") for page in pages.TEXTS.values()}
    written = {path.stem for path in (pages.ROOT / "docs").glob("*.md")}
    made = (texts | written | {"reference/index"}) - {"index"}
    assert sorted(listed) == sorted(made)


def test_links_lead_to_pages_of_the_site():
    huber = "{py:obj}`rl.losses.huber <keras_rl2.losses.huber>`"
    for link, expected in (
        ("[a](gpu.md#x)", "[a](../gpu.md#x)"),
        ("![a](gpu.png)", "![a](../gpu.png)"),
        ("[a](../BENCHMARKS.md)", "[a](../benchmarks.md)"),
        (
            "[a](../examples/ppo_cartpole.py)",
            "[a](../examples/ppo_cartpole.md)",
        ),
        ("[a](../tests)", "a"),
        ("[a](#b) [c](https://d)", "[a](#b) [c](https://d)"),
        ("`rl.PPO`", "{py:obj}`rl.PPO <keras_rl2.PPO>`"),
        ("`rl.agents.PPO`", "{py:obj}`rl.agents.PPO <keras_rl2.PPO>`"),
        ("`rl.losses.huber`", huber),
        ("`rl.data.huber` `rl.PPO()`", "`rl.data.huber` `rl.PPO()`"),
        ("## `rl.PPO`", "## `rl.PPO`"),
        ("[`rl.PPO`](gpu.md)", "[`rl.PPO`](../gpu.md)"),
        ("a<!-- run with: 1 => 2 -->\nb", "ab"),
        ("```\n[a](gpu.md)\n```\n", "```\n[a](gpu.md)\n```\n"),
    ):
        made = pages.with_links_of(link, "docs/page.md", "folder/page.md")
        assert made == expected
