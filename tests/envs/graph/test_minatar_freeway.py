"""Freeway in the graph equals that of the package `minatar`."""

from typing import Any

import pytest

from support.minatar_games import check_equals_package
from support.minatar_games import check_equals_record


@pytest.mark.slow
def test_equals_its_record() -> None:
    check_equals_record("freeway")


def test_equals_the_package_in_a_whole_episode() -> None:
    pytest.importorskip("minatar")
    counts = check_equals_package("freeway", num_envs=2, steps=2510)
    assert counts["episodes"] == 2


@pytest.mark.parametrize(
    "settings",
    [{}, {"sticky_action_prob": 0.5, "use_minimal_action_set": False}],
)
def test_equals_the_package_where_roads_are_crossed(
    settings: dict[str, Any],
) -> None:
    pytest.importorskip("minatar")
    counts = check_equals_package(
        "freeway",
        player=lambda game: 2 if game.pos > 1 else None,
        **settings,
    )
    assert counts["rewards"] > 10
