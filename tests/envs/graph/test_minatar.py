"""The games of MinAtar in the graph equal those of the package `minatar`.

Recorded steps of the package are compared without it.
"""

from typing import Any

import numpy as np
import pytest
from keras import ops

from keras_rl2.envs.graph.graph_env import make_graph_env
from keras_rl2.graph.graph_env_checks import check_graph_env
from support.minatar_games import IDS
from support.minatar_games import check_equals_package
from support.minatar_games import check_equals_record

CHANNELS = {
    "asterix": 4,
    "breakout": 4,
    "freeway": 7,
    "seaquest": 10,
    "space_invaders": 6,
}


@pytest.mark.parametrize("name", IDS)
def test_keeps_the_promises_of_environments(name: str) -> None:
    env = make_graph_env(IDS[name])
    check_graph_env(env)
    _, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    assert observation.shape == (10, 10, CHANNELS[name])
    assert env.observation_space.contains(np.asarray(observation))
    assert env.max_episode_steps is None
    every = make_graph_env(IDS[name], {"use_minimal_action_set": False})
    assert every.action_space.n == 6


@pytest.mark.parametrize(
    "name",
    [
        name
        if name == "breakout"
        else pytest.param(name, marks=pytest.mark.slow)
        for name in IDS
    ],
)
def test_equals_its_record(name: str) -> None:
    check_equals_record(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "episodes", "rewards"),
    [
        ("asterix", 20, 5),
        ("breakout", 100, 100),
        ("seaquest", 20, -1),
        ("space_invaders", 20, 100),
    ],
)
def test_equals_the_package(name: str, episodes: int, rewards: int) -> None:
    settings: list[dict[str, Any]] = [
        {},
        {"sticky_action_prob": 0.5, "use_minimal_action_set": False},
        {"difficulty_ramping": False},
    ]
    for each in settings:
        counts = check_equals_package(name, **each)
        assert counts["episodes"] > episodes
        assert counts["rewards"] > rewards


@pytest.mark.slow
def test_asterix_where_it_is_most_difficult() -> None:
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


@pytest.mark.slow
def test_breakout_where_walls_are_cleared() -> None:
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


@pytest.mark.slow
def test_freeway_in_a_whole_episode() -> None:
    counts = check_equals_package("freeway", num_envs=2, steps=2510)
    assert counts["episodes"] == 2


@pytest.mark.slow
def test_freeway_where_roads_are_crossed() -> None:
    settings: list[dict[str, Any]] = [
        {},
        {"sticky_action_prob": 0.5, "use_minimal_action_set": False},
    ]
    for each in settings:
        counts = check_equals_package(
            "freeway", player=lambda game: 2 if game.pos > 1 else None, **each
        )
        assert counts["rewards"] > 10


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


def seaquest_with(**values: int) -> Any:
    """Returns a function that sets values of a game in both."""

    def begin(game: Any) -> dict[str, int]:
        for name, value in values.items():
            setattr(game, name, value)
        return {NAMES[name]: value for name, value in values.items()}

    return begin


@pytest.mark.slow
@pytest.mark.parametrize("spawn_interval", [1, 3])
def test_seaquest_among_many_enemies(spawn_interval: int) -> None:
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
        begin=seaquest_with(
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


@pytest.mark.slow
def test_seaquest_at_the_surface() -> None:
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
        begin=seaquest_with(diver_count=6, sub_y=1, surface=False, oxygen=157),
    )
    # A full crew leaves one less than none, and the way up is free from then.
    assert found["rewards"] >= 6 * 7
    assert min(counts) < -5
    assert max(ramps) > 18


@pytest.mark.slow
@pytest.mark.parametrize("rescued", [0, 5])
def test_seaquest_where_divers_are_rescued(rescued: int) -> None:
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
        begin=seaquest_with(
            diver_count=rescued, d_spawn_timer=1, e_spawn_speed=60
        ),
    )
    assert max(counts) > rescued
    assert max(counts) <= 6


@pytest.mark.slow
def test_seaquest_without_oxygen() -> None:
    counts = check_equals_package(
        "seaquest",
        steps=60,
        player=lambda game: 0,
        begin=seaquest_with(sub_y=4, oxygen=12),
    )
    assert counts["episodes"] == 6 * 4


def space_invaders_with(aliens: list[tuple[int, int]]) -> Any:
    """Returns a function that leaves few aliens at the beginning."""

    def begin(game: Any) -> dict[str, Any]:
        game.alien_map[:] = 0
        game.alien_map[tuple(np.transpose(aliens))] = 1
        return {"aliens": game.alien_map.astype(bool)}

    return begin


@pytest.mark.slow
@pytest.mark.parametrize("difficulty_ramping", [True, False])
def test_space_invaders_where_waves_are_shot(difficulty_ramping: bool) -> None:
    ramps = []

    def player(game: Any) -> int | None:
        """Shoots below aliens."""
        ramps.append((game.ramp_index, game.alien_map.sum()))
        is_below = game.alien_map[:, game.pos].any()
        return 5 if is_below and game.shot_timer == 0 else None

    counts = check_equals_package(
        "space_invaders",
        player=player,
        begin=space_invaders_with([(3, 4), (3, 6), (2, 5)]),
        sticky_action_prob=0.0,
        difficulty_ramping=difficulty_ramping,
    )
    assert counts["rewards"] > 50
    # All of a wave have been shot, since there are more than at the beginning.
    assert max(aliens for _, aliens in ramps) == 24
    assert (max(ramp for ramp, _ in ramps) > 0) == difficulty_ramping


@pytest.mark.slow
def test_space_invaders_where_aliens_land() -> None:
    # Far from the cannon, which stands still.
    counts = check_equals_package(
        "space_invaders",
        steps=100,
        player=lambda game: 0,
        begin=space_invaders_with([(9, 2), (1, 8)]),
    )
    assert counts["episodes"] > 20
