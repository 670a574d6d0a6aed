"""Breakout in the graph equals that of the package `minatar`."""

from typing import Any

import pytest

from support.minatar_games import check_equals_package
from support.minatar_games import check_equals_record


def test_equals_its_record() -> None:
    check_equals_record("breakout")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sticky_action_prob": 0.5, "use_minimal_action_set": False},
        {"difficulty_ramping": False},
    ],
)
def test_equals_the_package(settings: dict[str, Any]) -> None:
    pytest.importorskip("minatar")
    counts = check_equals_package("breakout", **settings)
    assert counts["episodes"] > 100
    assert counts["rewards"] > 100


def test_equals_the_package_where_walls_are_cleared() -> None:
    pytest.importorskip("minatar")
    walls = []

    def player(game: Any) -> int:
        """Follows the ball, to meet it where it comes down."""
        walls.append(game.brick_map.sum())
        x_speed = 1 if game.ball_dir in (1, 2) else -1
        goal = game.ball_x + x_speed * (game.ball_y > 6)
        return 3 if goal > game.pos else 1 if goal < game.pos else 0

    check_equals_package(
        "breakout", num_envs=4, steps=1500, player=player, sticky_action_prob=0
    )
    assert min(walls) == 0
