"""A new agent is found by the tests, the presets, the docs and the examples.

Each list that has to name all agents is compared with the public classes of
`keras_rl2.agents`. A failure names the lists that lack a new agent.
"""

import inspect
import pathlib
import re

import keras
import pytest

import keras_rl2 as rl
from keras_rl2 import presets
from support.agents import EVERY_AGENT
from website import agent_lists

ROOT = pathlib.Path(__file__).parents[2]

ALGORITHMS = {
    name: getattr(rl.agents, name)
    for name in rl.agents.__all__
    if issubclass(getattr(rl.agents, name), rl.Agent)
    and not inspect.isabstract(getattr(rl.agents, name))
    and keras.saving.get_registered_name(getattr(rl.agents, name)) != name
}
"""Public classes that can be saved by a name of their own: no mere bases."""

KINDS = {"BoxCQL": "CQL", "DiscreteCQL": "CQL"}
"""Classes that are one algorithm, for several kinds of actions."""

NAMES = {KINDS.get(name, name) for name in ALGORITHMS}
"""What the algorithms are called where there are no classes."""


def test_tests_run_over_all_of_them():
    assert {"PPO", "DQN"} <= set(ALGORITHMS)
    assert "Agent" not in ALGORITHMS
    assert set(EVERY_AGENT) == set(ALGORITHMS)
    for name, case in EVERY_AGENT.items():
        assert case.make is ALGORITHMS[name]


def test_every_agent_is_a_name_of_keras_rl2():
    assert set(rl.__all__) >= NAMES


def test_presets_know_all_of_them():
    assert set(presets.ALGORITHMS) == NAMES
    for name, made in ALGORITHMS.items():
        known = presets.ALGORITHMS[KINDS.get(name, name)]
        assert known.on_policy == made.on_policy
        kinds = {kind.__name__ for kind in made.action_kinds}
        assert known.learns_with_memory(kinds) == made.takes_memory
        if name in KINDS:
            # The classes of one algorithm share its kinds.
            assert kinds == {{"BoxCQL": "Box", "DiscreteCQL": "Discrete"}[name]}
            kinds = {kind.__name__ for kind in rl.CQL.kinds}
        assert kinds == set(known.actions or {"Space"}), name


def test_presets_have_defaults_of_each():
    for name in NAMES:
        preset = presets.default(name, "CartPole-v1")
        assert preset.algorithm == name
        assert preset.optimizer["name"]


def page_of(name):
    return ROOT / "docs" / f"{agent_lists.page_of(name)}.md"


def test_each_has_a_page_and_an_example():
    examples = sorted((ROOT / "examples").glob("*.py"))
    for name in NAMES:
        assert page_of(name).read_text("utf-8").startswith(f"# {name}\n")
        # Blocks of pages are run by `tests/docs`.
        texts = [each.read_text("utf-8") for each in (page_of(name), *examples)]
        uses = re.compile(rf"\b{name}(\.for_env)?\(")
        assert any(map(uses.search, texts)), name


@pytest.mark.parametrize("page", agent_lists.PAGES)
def test_pages_that_list_agents_list_all_of_them(page):
    """`python website/agent_lists.py` writes those that a page lacks."""
    text = (ROOT / page).read_text("utf-8")
    assert agent_lists.PAGES[page](text) == text


@pytest.mark.parametrize(
    ("page", "mention", "written"),
    [
        (
            "README.md",
            ", [IQL](docs/iql.md)",
            "| [IQL](docs/iql.md) | Implicit",
        ),
        ("docs/agents.md", "| [`IQL`](iql.md)", "[`IQL`](iql.md) | recorded"),
        ("docs/index.md", "iql\n", "ddpg\ndqn\niql\nppo"),
        ("docs/which_agent.md", "IQL, TD3BC, BehaviorCloning |", ", IQL |"),
    ],
)
def test_a_page_that_lacks_an_agent_is_completed(page, mention, written):
    text = (ROOT / page).read_text("utf-8")
    start = text.index(mention)
    end = start + len(mention)
    if page == "docs/agents.md":
        end = text.index("\n", start) + 1
    kept = mention.removeprefix("IQL, ") if "which" in page else ""
    lacking = text[:start] + kept + text[end:]
    assert written not in lacking
    assert written in agent_lists.PAGES[page](lacking)


def test_examples_are_listed():
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "examples").glob("*.py"):
        assert f"[`{path.name}`]({path.name})" in listed, path.name
