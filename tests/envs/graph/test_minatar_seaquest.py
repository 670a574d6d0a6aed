"""Seaquest in the graph equals that of the package `minatar`."""

from typing import Any

import pytest

from support.minatar_games import check_equals_package
from support.minatar_games import check_equals_record

# The package's names of what a test sets, and ours.
NAMES = {
    "oxygen": "oxygen",
    "diver_count": "rescued",
    "sub_y": "y",
    "surface": "is_up",
    "move_speed": "move_interval",
    "e_spawn_speed": "spawn_interval",
    "e_spawn_timer": "spawn_timer",
    "d_spawn_timer": "diver_timer",
}


def beginning_with(**values: int) -> Any:
    """Returns a function that sets values of a game in both."""

    def begin(game: Any) -> dict[str, int]:
        for name, value in values.items():
            setattr(game, name, value)
        return {NAMES[name]: value for name, value in values.items()}

    return begin


@pytest.mark.slow
def test_equals_its_record() -> None:
    check_equals_record("seaquest")


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
    counts = check_equals_package("seaquest", **settings)
    assert counts["episodes"] > 20


@pytest.mark.parametrize("spawn_interval", [1, 3])
def test_equals_the_package_among_many_enemies(spawn_interval: int) -> None:
    pytest.importorskip("minatar")
    counts = []

    def player(game: Any) -> int | None:
        """Dives where no enemy is near, shoots, and comes back."""
        enemies = game.e_subs + game.e_fish
        counts.append(len(enemies))
        x, y = game.sub_x, game.sub_y
        if y == 0:
            is_near = any(
                row == 1 and abs(column - x) < 3 for column, row, *_ in enemies
            )
            return 0 if is_near or len(enemies) < 20 // spawn_interval else 4
        ahead = [column for column, row, *_ in enemies if abs(row - y) < 1]
        if not ahead:
            return None
        is_right = ahead[0] > x
        if is_right != game.sub_or:
            return 3 if is_right else 1
        return 5 if game.shot_timer == 0 else 2

    found = check_equals_package(
        "seaquest",
        num_envs=8,
        steps=800,
        player=player,
        begin=beginning_with(
            # The way up is free.
            diver_count=-1000,
            e_spawn_speed=spawn_interval,
            e_spawn_timer=0,
            move_speed=2,
        ),
        difficulty_ramping=False,
    )
    assert found["rewards"] > 20
    assert max(counts) > 22 // spawn_interval


def test_equals_the_package_at_the_surface() -> None:
    pytest.importorskip("minatar")
    counts, ramps = [], []

    def player(game: Any) -> int:
        """Dives and comes back."""
        counts.append(game.diver_count)
        ramps.append(game.ramp_index)
        return 4 if game.sub_y == 0 else 2

    found = check_equals_package(
        "seaquest",
        steps=100,
        player=player,
        begin=beginning_with(diver_count=6, sub_y=1, surface=False, oxygen=157),
    )
    # A full crew leaves one less than none, and the way up is free from then.
    assert found["rewards"] >= 6 * 7
    assert min(counts) < -5
    assert max(ramps) > 18


@pytest.mark.parametrize("rescued", [0, 5])
def test_equals_the_package_where_divers_are_rescued(rescued: int) -> None:
    pytest.importorskip("minatar")
    counts = []

    def player(game: Any) -> int | None:
        """Goes to the divers."""
        counts.append(game.diver_count)
        if not game.divers:
            return None if game.sub_y else 0
        x, y = game.divers[-1][:2]
        if y != game.sub_y:
            return 4 if y > game.sub_y else 2
        return 3 if x > game.sub_x else 1 if x < game.sub_x else 5

    check_equals_package(
        "seaquest",
        player=player,
        begin=beginning_with(
            diver_count=rescued, d_spawn_timer=1, e_spawn_speed=60
        ),
    )
    assert max(counts) > rescued
    assert max(counts) <= 6


def test_equals_the_package_without_oxygen() -> None:
    pytest.importorskip("minatar")
    counts = check_equals_package(
        "seaquest",
        steps=60,
        player=lambda game: 0,
        begin=beginning_with(sub_y=4, oxygen=12),
    )
    assert counts["episodes"] == 6 * 4
