import re

import pytest

from keras_rl2 import presets
from keras_rl2.cli.main import main


def rows_of(capsys, *words):
    """Returns the first two columns of the table."""
    assert main(["presets", *words]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    return [tuple(row.split()[:2]) for row in rows]


@pytest.mark.parametrize("env_id", [None, "CartPole-v1"])
def test_the_table_has_all_presets(env_id, capsys):
    assert main(["presets", *([env_id] if env_id else [])]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "algorithm",
        "environment",
        "steps",
        "updates",
        "laptop",
    ]
    assert [row.split() for row in rows] == [
        [
            preset.algorithm,
            preset.environment,
            f"{preset.total_steps:,}" if preset.total_steps else "-",
            f"{preset.updates:,}" if preset.updates else "-",
            "yes" if preset.laptop else "no",
        ]
        for preset in presets.available(env_id)
    ]


def test_columns_are_straight(capsys):
    assert main(["presets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    column = lines[0].index("environment")
    assert all(re.match(r"\S+ +$", line[:column]) for line in lines)
    assert len({line.rindex("  ") for line in lines}) == 1


@pytest.mark.parametrize(("typed", "name"), [("ppo", "PPO"), ("A2C", "A2C")])
def test_those_of_an_algorithm(typed, name, capsys):
    assert rows_of(capsys, typed) == [
        (name, preset.environment)
        for preset in presets.available()
        if preset.algorithm == name
    ]


@pytest.mark.parametrize(
    "words", [("bc", "CartPole-v1"), ("CartPole-v1", "behaviorcloning")]
)
def test_an_algorithm_and_an_environment(words, capsys):
    assert rows_of(capsys, *words) == [("BehaviorCloning", "CartPole-v1")]


def test_two_that_have_nothing_in_common(refused):
    line = refused("presets", "sac", "CartPole-v1")
    assert "no preset for sac CartPole-v1" in line


@pytest.mark.parametrize(
    ("word", "near"), [("Cartpole", "CartPole-v1"), ("pppo", "PPO")]
)
def test_what_is_neither_is_named(word, near, refused):
    assert f"no preset for {word!r}, nearest: {near}" in refused(
        "presets", word
    )
