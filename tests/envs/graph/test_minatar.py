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


@pytest.mark.parametrize("name", IDS)
def test_keeps_the_promises_of_environments(name: str) -> None:
    env = make_graph_env(IDS[name])
    check_graph_env(env)
    _, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    assert observation.shape == (10, 10, 4)
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
