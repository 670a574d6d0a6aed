"""Space Invaders in the graph equals that of the package `minatar`."""

from typing import Any

import numpy as np
import pytest

from support.minatar_games import check_equals_package
from support.minatar_games import check_equals_record


@pytest.mark.slow
def test_equals_its_record() -> None:
    check_equals_record("space_invaders")


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
    counts = check_equals_package("space_invaders", **settings)
    assert counts["episodes"] > 20
    assert counts["rewards"] > 100


def beginning_with(aliens: list[tuple[int, int]]) -> Any:
    """Returns a function that leaves few aliens at the beginning."""

    def begin(game: Any) -> dict[str, Any]:
        game.alien_map[:] = 0
        game.alien_map[tuple(np.transpose(aliens))] = 1
        return {"aliens": game.alien_map.astype(bool)}

    return begin


@pytest.mark.parametrize("difficulty_ramping", [True, False])
def test_equals_the_package_where_waves_are_shot(
    difficulty_ramping: bool,
) -> None:
    pytest.importorskip("minatar")
    ramps = []

    def player(game: Any) -> int | None:
        """Shoots below aliens."""
        ramps.append((game.ramp_index, game.alien_map.sum()))
        is_below = game.alien_map[:, game.pos].any()
        return 5 if is_below and game.shot_timer == 0 else None

    counts = check_equals_package(
        "space_invaders",
        player=player,
        begin=beginning_with([(3, 4), (3, 6), (2, 5)]),
        sticky_action_prob=0.0,
        difficulty_ramping=difficulty_ramping,
    )
    assert counts["rewards"] > 50
    # All of a wave have been shot, since there are more than at the beginning.
    assert max(aliens for _, aliens in ramps) == 24
    assert (max(ramp for ramp, _ in ramps) > 0) == difficulty_ramping


def test_equals_the_package_where_aliens_land() -> None:
    pytest.importorskip("minatar")
    # Far from the cannon, which stands still.
    counts = check_equals_package(
        "space_invaders",
        steps=100,
        player=lambda game: 0,
        begin=beginning_with([(9, 2), (1, 8)]),
    )
    assert counts["episodes"] > 20
