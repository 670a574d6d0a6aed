"""Asterix in the graph equals that of the package `minatar`."""

from typing import Any

import pytest

from support.minatar_games import check_equals_package
from support.minatar_games import check_equals_record


@pytest.mark.slow
def test_equals_its_record() -> None:
    check_equals_record("asterix")


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
    counts = check_equals_package("asterix", **settings)
    assert counts["episodes"] > 20
    assert counts["rewards"] > 5


def test_equals_the_package_where_it_is_most_difficult() -> None:
    pytest.importorskip("minatar")
    ramps = []

    def player(game: Any) -> int | None:
        """Keeps out of the rows of enemies, mostly."""
        ramps.append(game.ramp_index)
        enemies = [
            (abs(each[1] - game.player_y), each[1])
            for each in game.entities
            if each is not None and not each[3]
        ]
        rows = {row for _, row in enemies}
        if game.player_y not in rows:
            return 0
        if game.player_y > 1 and game.player_y - 1 not in rows:
            return 2
        return 4 if game.player_y < 8 else None

    def begin(game: Any) -> dict[str, int]:
        """Is soon as difficult as can be."""
        game.ramp_timer, game.ramp_index, game.spawn_timer = 20, 1, 0
        game.spawn_speed = game.move_speed = 2
        return {
            "ramp_timer": 20,
            "ramps": 1,
            "spawn_timer": 0,
            "spawn_interval": 2,
            "move_interval": 2,
        }

    counts = check_equals_package("asterix", player=player, begin=begin)
    assert counts["rewards"] > 10
    assert max(ramps) == 2


def test_equals_the_package_in_a_long_game() -> None:
    pytest.importorskip("minatar")

    def begin(game: Any) -> dict[str, int]:
        """Lets nothing enter but once."""
        game.spawn_speed = game.spawn_timer = 1000
        return {"spawn_interval": 1000, "spawn_timer": 1000}

    check_equals_package("asterix", num_envs=2, steps=1000, begin=begin)
