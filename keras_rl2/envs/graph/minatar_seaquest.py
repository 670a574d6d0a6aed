"""MinAtar's Seaquest within a graph."""

from typing import Any

import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import minatar
from keras_rl2.envs.graph.minatar import SIZE
from keras_rl2.envs.graph.minatar import Game
from keras_rl2.envs.graph.minatar import Played

_BOTTOM = SIZE - 1
_INDICES = np.arange(SIZE, dtype=np.int32)
_DEEPEST = 8
_OXYGEN, _CREW = 200, 6
_PAUSE = 5
_SPAWN_INTERVAL, _DIVER_INTERVAL = 20, 30
_MOVE_INTERVAL, _SHORTEST_MOVE_INTERVAL = 5, 2
_SHOT_INTERVAL = 10
# The most there can be: an enemy crosses the board within 30 steps once one
# enters at each step; bullets cross it within 10 steps and are shot at each
# fifth; divers cross it within 60 steps and enter at each thirtieth.
_ENEMIES, _BULLETS, _DIVERS = 32, 2, 2
# Enough to count to 32.
_BITS = 6
# Above the number of any step.
_NEVER = 2**30


class Seaquest(minatar.MinAtar):
    """A submarine rescues divers, and shoots fish and submarines.

    It equals `MinAtar/Seaquest-v1`. The channels are front and back of the
    submarine, its bullets, trails, bullets of enemies, fish, submarines, the
    gauges of oxygen and of divers, and divers. Each enemy that is shot gives a
    reward of 1; and to surface with six divers gives up to 10, the more the
    more oxygen is left. After each time at the surface enemies are faster and
    more.

    Args:
        sticky_action_prob: float. Probability of each step to repeat the last
            action in place of the given one. Defaults to `0.1`.
        difficulty_ramping: bool. Whether a game becomes more difficult with
            each time at the surface. Defaults to `True`.
        use_minimal_action_set: bool. Has no effect, since all 6 actions count:
            nothing, left, up, right, down and fire. Defaults to `True`.

    Example:

    >>> env = Seaquest()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([10, 10, 10])
    """

    _actions = tuple(range(6))
    _channels = 10
    # Three for an enemy and two for a diver.
    _numbers = 5

    def _begin(self, drawn: Tensor) -> Game:
        """Begins at the surface of an empty sea."""
        empty = ops.zeros((SIZE, SIZE), "bool")
        return (
            minatar.integers(
                x=5,
                y=0,
                clock=0,
                pause=0,
                oxygen=_OXYGEN,
                rescued=0,
                ramps=0,
                move_interval=_MOVE_INTERVAL,
                spawn_interval=_SPAWN_INTERVAL,
                spawn_timer=_SPAWN_INTERVAL,
                diver_timer=_DIVER_INTERVAL,
            )
            | _nothing("bullet", _BULLETS)
            | _nothing("diver", _DIVERS, timers="int32")
            | _nothing(
                "enemy",
                _ENEMIES,
                is_sub="bool",
                born="int32",
                timer="int32",
                shot_timer="int32",
            )
            | {
                "faces_right": ops.zeros((), "bool"),
                "is_up": ops.ones((), "bool"),
                "shots_to_left": empty,
                "shots_to_right": empty,
            }
        )

    def _play(self, game: Game, action: Tensor, drawn: Tensor) -> Played:
        """Moves the submarine, then everything else in turn."""
        game = _with_new_enemy(game, drawn[:3])
        game = _with_new_diver(game, drawn[3:])
        game = _steered(game, action)
        game, hits = _bullets_moved(game)
        game = _divers_moved(game)
        game, more_hits, meets_enemy = _enemies_moved(game)
        game, meets_shot = _shots_moved(game)
        for timer in ("spawn_timer", "diver_timer", "pause"):
            game[timer] = ops.maximum(game[timer] - 1, 0)
        has_no_air = game["oxygen"] <= 0
        game, bonus, is_empty = self._breathed(game)
        game["clock"] = game["clock"] + 1
        return (
            game,
            hits + more_hits + bonus,
            meets_enemy | meets_shot | has_no_air | is_empty,
        )

    def _breathed(self, game: Game) -> tuple[Game, Any, Any]:
        """Takes oxygen, or fills it up at the surface.

        Args:
            game: The game.

        Returns:
            The game after it, the reward for the divers, and whether the
            submarine is at the surface without any.
        """
        is_up = game["y"] == 0
        rescued, oxygen = game["rescued"], game["oxygen"]
        arrives = is_up & ~game["is_up"]
        is_empty = arrives & (rescued == 0)
        surfaces = arrives & ~is_empty
        is_full = surfaces & (rescued == _CREW)
        # One more is taken from a full crew as well, as in the original: below
        # zero the submarine may surface without divers.
        left = ops.where(is_full, 0, rescued) - 1
        after = game | {
            "oxygen": ops.where(
                surfaces, _OXYGEN, ops.where(is_up, oxygen, oxygen - 1)
            ),
            "rescued": ops.where(surfaces, left, rescued),
            "is_up": ops.where(is_up, game["is_up"] | surfaces, False),
        }
        if self._is_ramping:
            after = after | _ramped(after, surfaces)
        return after, ops.where(is_full, _tenths(oxygen), 0), is_empty

    def _picture(self, game: Game) -> list[Any]:
        """Returns the channels; see `MinAtar`."""
        at_bottom = _INDICES[:, None] == _BOTTOM
        oxygen = _tenths(ops.maximum(game["oxygen"], 0)) > _INDICES
        rescued = (_BOTTOM - game["rescued"] <= _INDICES) & (_INDICES < _BOTTOM)
        back = game["x"] - ops.where(game["faces_right"], 1, -1)
        return [
            minatar.cell(game["y"], game["x"]),
            minatar.cell(game["y"], back),
            _marked(game, "bullet"),
            _marked(game, "enemy", moved=-1) | _marked(game, "diver", moved=-1),
            game["shots_to_left"] | game["shots_to_right"],
            _marked(game, "enemy", ~game["enemy_is_sub"]),
            _marked(game, "enemy", game["enemy_is_sub"]),
            at_bottom & oxygen,
            at_bottom & rescued,
            _marked(game, "diver"),
        ]


def _tenths(oxygen: Any) -> Any:
    """Returns how many tenths of the oxygen are left."""
    return oxygen * 10 // _OXYGEN


def _nothing(kind: str, count: int, **dtypes: str) -> Game:
    """Returns arrays for things of a kind, of which there are none yet."""
    dtypes |= {"is_there": "bool", "goes_right": "bool"}
    dtypes |= {"x": "int32", "y": "int32"}
    return {
        f"{kind}_{name}": ops.zeros((count,), dtype)
        for name, dtype in dtypes.items()
    }


def _marked(game: Game, kind: str, which: Any = True, moved: int = 0) -> Any:
    """Marks cells where any of several things is.

    Args:
        game: The game.
        kind: str. Kind of the things.
        which: `[N]` bool. The things to mark. Defaults to `True`: all.
        moved: int. How many moves ahead of it each is marked. Defaults to `0`.

    Returns:
        `[10, 10]` bool.
    """
    y, x = game[f"{kind}_y"], _ahead(game, kind, moved)
    is_there = game[f"{kind}_is_there"] & which
    # A number for each row, of which six bits belong to each column and count
    # the things there: far fewer steps than to compare with each cell.
    one = ops.cast(is_there & _is_on_board(x), "int64")
    bits = ops.left_shift(
        one, ops.cast(_BITS * ops.clip(x, 0, _BOTTOM), "int64")
    )
    rows = ops.sum(ops.where(y[:, None] == _INDICES, bits[:, None], 0), axis=0)
    counts = ops.right_shift(rows[:, None], _BITS * _INDICES.astype(np.int64))
    return ops.bitwise_and(counts, np.int64(2**_BITS - 1)) > 0


def _ahead(game: Game, kind: str, moves: int = 1) -> Any:
    """Returns the columns after some moves."""
    right = ops.where(game[f"{kind}_goes_right"], moves, -moves)
    return game[f"{kind}_x"] + right


def _is_on_board(x: Any) -> Any:
    """Returns which columns are on the board."""
    return (x >= 0) & (x < SIZE)


def _is_at_player(game: Game, kind: str) -> Any:
    """Returns which things of a kind are at the front of the submarine."""
    is_there = game[f"{kind}_is_there"] & (game[f"{kind}_y"] == game["y"])
    return is_there & (game[f"{kind}_x"] == game["x"])


def _row(drawn: Any) -> Any:
    """Returns a random row in which things swim, from a number."""
    return 1 + ops.cast(ops.floor(drawn * _DEEPEST), "int32")


def _with_new_enemy(game: Game, drawn: Any) -> Game:
    """Lets an enemy enter, if it is time and none comes towards it."""
    goes_right, y = drawn[0] < 0.5, _row(drawn[2])
    is_due = game["spawn_timer"] == 0
    is_there = game["enemy_is_there"]
    is_against = (game["enemy_y"] == y) & (
        game["enemy_goes_right"] != goes_right
    )
    enters = is_due & ~ops.any(is_there & is_against)
    slots = np.arange(_ENEMIES, dtype=np.int32)
    free = ops.min(ops.where(is_there, _ENEMIES, slots))
    is_new = enters & (slots == free)
    values = {
        "is_there": True,
        "goes_right": goes_right,
        "x": ops.where(goes_right, 0, _BOTTOM),
        "y": y,
        "is_sub": drawn[1] < 1.0 / 3.0,
        "born": game["clock"],
        "timer": game["move_interval"],
        "shot_timer": _SHOT_INTERVAL,
    }
    after = {
        f"enemy_{name}": ops.where(is_new, value, game[f"enemy_{name}"])
        for name, value in values.items()
    }
    timer = ops.where(is_due, game["spawn_interval"], game["spawn_timer"])
    return game | after | {"spawn_timer": timer}


def _pushed(game: Game, is_new: Any, values: Game) -> Game:
    """Puts a new thing behind those of its kind, the first of which is gone.

    Args:
        game: The game.
        is_new: `[]` bool. Nothing changes where it is false.
        values: dict of scalars by the names of the arrays.

    Returns:
        The game after it.
    """
    return game | {
        name: ops.where(
            is_new,
            ops.concatenate([game[name][1:], ops.reshape(value, (1,))]),
            game[name],
        )
        for name, value in values.items()
    }


def _with_new_diver(game: Game, drawn: Any) -> Game:
    """Lets a diver enter, if it is time."""
    is_due = game["diver_timer"] == 0
    goes_right = drawn[0] < 0.5
    values = {
        "diver_is_there": is_due,
        "diver_goes_right": goes_right,
        "diver_x": ops.where(goes_right, 0, _BOTTOM),
        "diver_y": _row(drawn[1]),
        "diver_timers": ops.full((), _MOVE_INTERVAL, "int32"),
    }
    timer = ops.where(is_due, _DIVER_INTERVAL, game["diver_timer"])
    return _pushed(game, is_due, values) | {"diver_timer": timer}


def _steered(game: Game, action: Any) -> Game:
    """Moves the submarine, or shoots."""
    fires = (action == minatar.FIRE) & (game["pause"] == 0)
    values = {
        "bullet_is_there": fires,
        "bullet_goes_right": game["faces_right"],
        "bullet_x": game["x"],
        "bullet_y": game["y"],
    }
    turns = (action == minatar.LEFT) | (action == minatar.RIGHT)
    return _pushed(game, fires, values) | {
        "pause": ops.where(fires, _PAUSE, game["pause"]),
        "x": minatar.moved_aside(game["x"], action),
        "y": minatar.moved_up(game["y"], action, 0, _DEEPEST),
        "faces_right": ops.where(
            turns, action == minatar.RIGHT, game["faces_right"]
        ),
    }


def _bullets_moved(game: Game) -> tuple[Game, Any]:
    """Moves the player's bullets.

    Args:
        game: The game.

    Returns:
        The game after it, and the number of enemies that they hit.
    """
    x = _ahead(game, "bullet")
    flies = game["bullet_is_there"] & _is_on_board(x)
    game = game | {"bullet_x": x, "bullet_is_there": flies}
    # The oldest in the cell is hit, and fish before submarines.
    order = game["enemy_born"] + ops.where(game["enemy_is_sub"], _NEVER, 0)
    return _hit(game, game["enemy_is_there"], order, range(_BULLETS)[::-1])


def _hit(
    game: Game, is_target: Any, order: Any, bullets: Any
) -> tuple[Game, Any]:
    """Removes bullets, and an enemy for each in the same cell.

    Args:
        game: The game.
        is_target: `[N]` bool. Which enemies can be hit.
        order: `[N]` int32. The least of those in a cell is hit.
        bullets: Sequence of int. The bullets in turn.

    Returns:
        The game after it, and the number of enemies that are hit.
    """
    is_there, flies = game["enemy_is_there"], game["bullet_is_there"]
    hits = ops.zeros((), "int32")
    for index in bullets:
        is_here = (
            flies[index]
            & is_target
            & is_there
            & (game["enemy_y"] == game["bullet_y"][index])
            & (game["enemy_x"] == game["bullet_x"][index])
        )
        least = ops.min(ops.where(is_here, order, 2 * _NEVER - 1))
        is_there = is_there & ~(is_here & (order == least))
        is_hit = ops.any(is_here)
        flies = flies & ~(is_hit & (np.arange(_BULLETS) == index))
        hits = hits + ops.cast(is_hit, "int32")
    return game | {"enemy_is_there": is_there, "bullet_is_there": flies}, hits


def _divers_moved(game: Game) -> Game:
    """Moves divers, and takes them aboard: the last that came first."""
    is_due = game["diver_timers"] == 0
    met_before = _is_at_player(game, "diver")
    x = ops.where(is_due, _ahead(game, "diver"), game["diver_x"])
    met_after = _is_at_player(game | {"diver_x": x}, "diver")
    is_met = met_before | met_after
    # A diver met before the move may still have moved, if no place is free.
    rescued = game["rescued"]
    is_taken = [ops.zeros((), "bool")] * _DIVERS
    for index in range(_DIVERS)[::-1]:
        is_taken[index] = is_met[index] & (rescued < _CREW)
        rescued = rescued + ops.cast(is_taken[index], "int32")
    stays = game["diver_is_there"] & ~ops.stack(is_taken) & _is_on_board(x)
    return game | {
        "rescued": rescued,
        "diver_x": x,
        "diver_is_there": stays,
        "diver_timers": ops.where(
            is_due, _MOVE_INTERVAL, game["diver_timers"] - 1
        ),
    }


def _enemies_moved(game: Game) -> tuple[Game, Any, Any]:
    """Moves fish and submarines, which may meet bullets, and shoot.

    Args:
        game: The game.

    Returns:
        The game after it, the number of enemies that came into bullets, and
        whether one has met the player.
    """
    was_there, timer = game["enemy_is_there"], game["enemy_timer"]
    meets = ops.any(_is_at_player(game, "enemy"))
    moves = timer == 0
    x = ops.where(moves, _ahead(game, "enemy"), game["enemy_x"])
    shot_timer = game["enemy_shot_timer"]
    shoots = was_there & game["enemy_is_sub"] & (shot_timer == 0)
    game = game | {
        "enemy_x": x,
        "enemy_is_there": was_there & _is_on_board(x),
        "enemy_timer": ops.where(moves, game["move_interval"], timer - 1),
        "enemy_shot_timer": ops.where(
            shot_timer == 0, _SHOT_INTERVAL, shot_timer - 1
        ),
    }
    for name, goes in (
        ("shots_to_left", ~game["enemy_goes_right"]),
        ("shots_to_right", game["enemy_goes_right"]),
    ):
        game[name] = game[name] | _marked(game, "enemy", shoots & goes)
    is_met = _is_at_player(game, "enemy")
    # Submarines move before fish, and the last that came first.
    order = ops.where(game["enemy_is_sub"], 0, _NEVER) - game["enemy_born"]
    game, hits = _hit(game, moves & ~is_met, order, range(_BULLETS))
    return game, hits, meets | ops.any(is_met)


def _shots_moved(game: Game) -> tuple[Game, Any]:
    """Moves the bullets of enemies, and tells whether one meets the player."""
    left, right = game["shots_to_left"], game["shots_to_right"]
    player = minatar.cell(game["y"], game["x"])
    edge = ops.zeros((SIZE, 1), "bool")
    left_after = ops.concatenate([left[:, 1:], edge], axis=1)
    right_after = ops.concatenate([edge, right[:, :-1]], axis=1)
    shots = left | right | left_after | right_after
    after = {"shots_to_left": left_after, "shots_to_right": right_after}
    return game | after, ops.any(shots & player)


def _ramped(game: Game, surfaces: Any) -> Game:
    """Returns the parts that a time at the surface makes more difficult."""
    move, spawn = game["move_interval"], game["spawn_interval"]
    can_move, can_spawn = move > _SHORTEST_MOVE_INTERVAL, spawn > 1
    is_odd = game["ramps"] % 2 == 1
    return {
        "move_interval": ops.where(
            surfaces & can_move & is_odd, move - 1, move
        ),
        "spawn_interval": ops.where(surfaces & can_spawn, spawn - 1, spawn),
        "ramps": ops.where(
            surfaces & (can_move | can_spawn), game["ramps"] + 1, game["ramps"]
        ),
    }
