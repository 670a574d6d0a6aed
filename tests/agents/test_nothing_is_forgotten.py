"""A new agent is found by the tests, the presets, the docs and the examples.

Each list that has to name all agents is compared with the classes that
`keras_rl2.agents` makes public: who adds one is told here what is missing.
"""

import inspect
import pathlib
import re

import keras
import pytest

import keras_rl2 as rl
from keras_rl2 import presets
from keras_rl2.presets import defaults
from keras_rl2.presets import schema
from support.agents import AGENTS
from support.agents import CLONING
from support.agents import EVERY_AGENT
from support.agents import OFF_POLICY

ROOT = pathlib.Path(__file__).parents[2]

ALGORITHMS = {
    name: getattr(rl.agents, name)
    for name in rl.agents.__all__
    if not inspect.isabstract(getattr(rl.agents, name))
    and keras.saving.get_registered_name(getattr(rl.agents, name)) != name
}
"""Public classes that can be saved by a name of their own: no mere bases."""

KINDS = {"BoxCQL": "CQL", "DiscreteCQL": "CQL"}
"""Classes that are one algorithm, for several kinds of actions."""

NAMES = {KINDS.get(name, name) for name in ALGORITHMS}
"""What the algorithms are called where there are no classes."""

PAGES = {"BehaviorCloning": "bc"}
"""Pages that are not named as their algorithm."""

over_algorithms = pytest.mark.parametrize("name", sorted(NAMES))


def test_there_are_algorithms():
    assert {"PPO", "DQN"} <= set(ALGORITHMS)
    assert "Agent" not in ALGORITHMS


def test_tests_run_over_all_of_them():
    assert set(EVERY_AGENT) == set(ALGORITHMS)
    for name, case in EVERY_AGENT.items():
        assert case.make is ALGORITHMS[name]
        assert (name in AGENTS) == case.make.on_policy
        assert (name in {**OFF_POLICY, **CLONING}) != case.make.on_policy


def test_they_are_found_at_the_top():
    assert set(rl.__all__) >= NAMES


def test_presets_know_all_of_them():
    assert set(presets.ALGORITHMS) == NAMES
    for name, made in ALGORITHMS.items():
        known = presets.ALGORITHMS[KINDS.get(name, name)]
        assert known.on_policy == made.on_policy


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_presets_know_what_each_acts_in(name):
    known = presets.ALGORITHMS[KINDS.get(name, name)].actions
    made = {kind.__name__ for kind in ALGORITHMS[name].action_kinds}
    if name in KINDS:
        # The classes of one algorithm share its kinds.
        assert made == {{"BoxCQL": "Box", "DiscreteCQL": "Discrete"}[name]}
        assert set(known) == {kind.__name__ for kind in rl.CQL.kinds}
    else:
        assert made == ({"Space"} if known is None else set(known))


def test_the_page_of_agents_says_what_each_acts_in():
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    table = page.split("\n\n")[1]
    rows = [line.split("|")[1:-1] for line in table.split("\n")]
    columns = [cell.strip() for cell in rows[0]]
    for row in rows[2:]:
        said = dict(zip(columns, map(str.strip, row), strict=True))
        for name in re.findall(r"\[`(\w+)`\]", said["agent"]):
            known = presets.ALGORITHMS[name].actions
            some = {
                "Discrete": "yes" if "Discrete" in (known or ()) else "",
                "Box": "finite bounds" if "Box" in (known or ()) else "",
                "MultiBinary": "",
            }
            for column, expected in some.items():
                assert said[column] == (expected if known else "yes"), name


@over_algorithms
def test_presets_have_its_settings_and_defaults(name):
    settings = schema.settings_of(name)
    assert "agent.gamma" in settings
    preset = defaults.default(name, "CartPole-v1")
    assert preset.algorithm == name
    assert preset.optimizer["name"]


@over_algorithms
def test_it_has_a_page(name):
    page = ROOT / "docs" / f"{PAGES.get(name, name.lower())}.md"
    assert page.read_text(encoding="utf-8").startswith(f"# {name}\n")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"docs/{page.name}" in readme


@over_algorithms
def test_it_has_an_example(name):
    examples = sorted((ROOT / "examples").glob("*.py"))
    uses = re.compile(rf"\b{name}(\.for_env)?\(")
    assert any(uses.search(path.read_text("utf-8")) for path in examples)


def test_examples_are_listed():
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "examples").glob("*.py"):
        assert f"[`{path.name}`]({path.name})" in listed, path.name
