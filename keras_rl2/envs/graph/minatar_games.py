"""MinAtar's Asterix, Breakout and Freeway within a graph."""

from typing import Any

import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import minatar
from keras_rl2.envs.graph.minatar import SIZE
from keras_rl2.envs.graph.minatar import Game
from keras_rl2.envs.graph.minatar import Played

_BOTTOM = SIZE - 1
# Lines, or lanes, with one thing each.
_LINES = 8
_ROWS = np.arange(1, 1 + _LINES, dtype=np.int32)

# Of Asterix.
_SPAWN_INTERVAL, _MOVE_INTERVAL, _RAMP_INTERVAL = 10, 5, 100

# Of Breakout.
_WALL = np.zeros((SIZE, SIZE), np.bool_)
_WALL[1:4] = True

# Of Freeway: steps until the chicken moves again, and those of an episode.
_PAUSE, _STEPS = 3, 2500
_COLUMN, _SLOWEST = 4, 5


class Asterix(minatar.MinAtar):
    """A player picks up treasures and evades enemies.

    It equals `MinAtar/Asterix-v1`. The channels are player, enemies, trails and
    treasures. Each treasure gives a reward of 1. The longer a game lasts, the
    faster and the more often come both.

    Args:
        sticky_action_prob: float. Probability of each step to repeat the last
            action in place of the given one. Defaults to `0.1`.
        difficulty_ramping: bool. Whether a game becomes more difficult the
            longer it lasts. Defaults to `True`.
        use_minimal_action_set: bool. Whether there are 5 actions, nothing,
            left, up, right and down, or all 6. Defaults to `True`.

    Example:

    >>> env = Asterix()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([10, 10, 4])
    """

    # All but to fire.
    _actions = tuple(range(minatar.FIRE))
    _channels = 4
    _numbers = 3

    def _begin(self, drawn: Tensor) -> Game:
        """Begins in the middle of an empty board."""
        nowhere = ops.zeros((_LINES,), "bool")
        return minatar.integers(
            x=5,
            y=5,
            spawn_interval=_SPAWN_INTERVAL,
            spawn_timer=_SPAWN_INTERVAL,
            move_interval=_MOVE_INTERVAL,
            move_timer=_MOVE_INTERVAL,
            ramp_timer=_RAMP_INTERVAL,
            ramps=0,
        ) | {
            "columns": ops.zeros((_LINES,), "int32"),
            "is_there": nowhere,
            "goes_right": nowhere,
            "is_gold": nowhere,
        }

    def _play(self, game: Game, action: Tensor, drawn: Tensor) -> Played:
        """Moves the player and everything else."""
        game = _with_newcomer(game, drawn)
        x = minatar.moved_aside(game["x"], action)
        y = minatar.moved_up(game["y"], action, 1, _LINES)
        is_gold, is_there = game["is_gold"], game["is_there"]
        is_at_player = (y == _ROWS) & (game["columns"] == x)
        touched = is_there & is_at_player
        is_there = is_there & ~(touched & is_gold)
        moves = game["move_timer"] == 0
        columns = ops.where(
            moves & is_there,
            game["columns"] + ops.where(game["goes_right"], 1, -1),
            game["columns"],
        )
        is_there = is_there & (columns >= 0) & (columns < SIZE)
        touched_after = moves & is_there & (y == _ROWS) & (columns == x)
        is_there = is_there & ~(touched_after & is_gold)
        # Never both, since what is touched moves away or is gone.
        touched = touched | touched_after
        after = game | {
            "x": x,
            "y": y,
            "columns": columns,
            "is_there": is_there,
            "spawn_timer": game["spawn_timer"] - 1,
            "move_timer": ops.where(
                moves, game["move_interval"], game["move_timer"]
            )
            - 1,
        }
        if self._is_ramping:
            after = _ramped(after)
        reward = ops.any(touched & is_gold)
        return after, reward, ops.any(touched & ~is_gold)

    def _picture(self, game: Game) -> list[Any]:
        """Returns the channels; see `MinAtar`."""
        columns, is_there = game["columns"], game["is_there"]
        is_gold = game["is_gold"]
        behind = columns - ops.where(game["goes_right"], 1, -1)
        return [
            minatar.cell(game["y"], game["x"]),
            minatar.in_lines(ops.where(is_there & ~is_gold, columns, -1)),
            minatar.in_lines(ops.where(is_there, behind, -1)),
            minatar.in_lines(ops.where(is_there & is_gold, columns, -1)),
        ]


def _with_newcomer(game: Game, drawn: Any) -> Game:
    """Lets an enemy or a treasure enter a free line, if it is time."""
    is_due = game["spawn_timer"] == 0
    is_free = ~game["is_there"]
    # The free lines before each one, and each one itself.
    number = ops.cumsum(ops.cast(is_free, "float32"))
    chosen = 1 + ops.floor(drawn[2] * number[-1])
    is_new = is_due & is_free & (number == chosen)
    is_from_left = drawn[0] < 0.5
    return game | {
        "spawn_timer": ops.where(
            is_due, game["spawn_interval"], game["spawn_timer"]
        ),
        "columns": ops.where(
            is_new,
            ops.where(is_from_left, 0, SIZE - 1),
            game["columns"],
        ),
        "is_there": game["is_there"] | is_new,
        "goes_right": ops.where(is_new, is_from_left, game["goes_right"]),
        "is_gold": ops.where(is_new, drawn[1] < 1.0 / 3.0, game["is_gold"]),
    }


def _ramped(game: Game) -> Game:
    """Makes a game more difficult, if it is time."""
    spawn, move = game["spawn_interval"], game["move_interval"]
    timer, ramps = game["ramp_timer"], game["ramps"]
    is_easy = (spawn > 1) | (move > 1)
    ramps_now = is_easy & (timer < 0)
    is_odd = ramps % 2 == 1
    return game | {
        "spawn_interval": ops.where(ramps_now & (spawn > 1), spawn - 1, spawn),
        "move_interval": ops.where(
            ramps_now & is_odd & (move > 1), move - 1, move
        ),
        "ramp_timer": ops.where(
            ramps_now, _RAMP_INTERVAL, ops.where(is_easy, timer - 1, timer)
        ),
        "ramps": ops.where(ramps_now, ramps + 1, ramps),
    }


class Breakout(minatar.MinAtar):
    """A ball breaks bricks, and a paddle keeps it from the bottom.

    It equals `MinAtar/Breakout-v1`. The channels are paddle, ball, trail of the
    ball, and bricks. Each brick gives a reward of 1. It never becomes more
    difficult.

    Args:
        sticky_action_prob: float. Probability of each step to repeat the last
            action in place of the given one. Defaults to `0.1`.
        difficulty_ramping: bool. Has no effect. Defaults to `True`.
        use_minimal_action_set: bool. Whether there are 3 actions, nothing, left
            and right, or all 6. Defaults to `True`.

    Example:

    >>> env = Breakout()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([10, 10, 4])
    """

    _actions = (minatar.NOTHING, minatar.LEFT, minatar.RIGHT)
    _channels = 4
    _numbers = 1

    def _begin(self, drawn: Tensor) -> Game:
        """Begins with a whole wall, and the ball below it at either side."""
        is_left = drawn[0] < 0.5
        x = ops.where(is_left, 0, _BOTTOM)
        return minatar.integers(paddle=4, y=3, trail_y=3, y_speed=1) | {
            "x": x,
            "trail_x": x,
            "x_speed": ops.where(is_left, 1, -1),
            "bricks": ops.convert_to_tensor(_WALL),
            "was_in_brick": ops.zeros((), "bool"),
        }

    def _play(self, game: Game, action: Tensor, drawn: Tensor) -> Played:
        """Moves the paddle and the ball by one cell."""
        paddle = minatar.moved_aside(game["paddle"], action)
        x, y = game["x"] + game["x_speed"], game["y"] + game["y_speed"]
        is_aside, is_above = (x < 0) | (x >= SIZE), y < 0
        x, y = ops.clip(x, 0, SIZE - 1), ops.maximum(y, 0)
        bricks = game["bricks"]
        place = minatar.cell(y, x)
        # A ball that enters a brick right after another one passes it.
        is_in_brick = ops.any(bricks & place)
        breaks = is_in_brick & ~game["was_in_brick"]
        bricks = bricks & ~(place & breaks)
        is_low = y == _BOTTOM
        bricks = bricks | (_WALL & is_low & ~ops.any(bricks))
        is_straight = is_low & (game["x"] == paddle)
        is_corner = is_low & ~is_straight & (x == paddle)
        bounces = breaks | is_straight | is_corner
        after = {
            "paddle": paddle,
            "x": x,
            "y": ops.where(bounces, game["y"], y),
            "trail_x": game["x"],
            "trail_y": game["y"],
            "x_speed": ops.where(
                is_aside ^ is_corner, -game["x_speed"], game["x_speed"]
            ),
            "y_speed": ops.where(
                is_above | bounces, -game["y_speed"], game["y_speed"]
            ),
            "bricks": bricks,
            "was_in_brick": is_in_brick,
        }
        return after, breaks, is_low & ~bounces

    def _picture(self, game: Game) -> list[Any]:
        """Returns the channels; see `MinAtar`."""
        return [
            minatar.cell(np.int32(_BOTTOM), game["paddle"]),
            minatar.cell(game["y"], game["x"]),
            minatar.cell(game["trail_y"], game["trail_x"]),
            game["bricks"],
        ]


class Freeway(minatar.MinAtar):
    """A chicken crosses a road with eight cars.

    It equals `MinAtar/Freeway-v1`. The channels are chicken, cars, and five for
    the trails of cars that move at each step, at each second one, and so on.
    Each crossing gives a reward of 1, and all cars new speeds. It never becomes
    more difficult.

    Args:
        sticky_action_prob: float. Probability of each step to repeat the last
            action in place of the given one. Defaults to `0.1`.
        difficulty_ramping: bool. Has no effect. Defaults to `True`.
        use_minimal_action_set: bool. Whether there are 3 actions, nothing, up
            and down, or all 6. Defaults to `True`.

    Example:

    >>> env = Freeway()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([10, 10, 7])
    """

    _actions = (minatar.NOTHING, minatar.UP, minatar.DOWN)
    _channels = 7
    _numbers = 2 * _LINES

    def _begin(self, drawn: Tensor) -> Game:
        """Begins with all cars at the left side."""
        speeds = _speeds(drawn)
        return minatar.integers(y=_BOTTOM, pause=_PAUSE, steps_left=_STEPS) | {
            "cars": ops.zeros((_LINES,), "int32"),
            "speeds": speeds,
            "waits": ops.abs(speeds),
        }

    def _play(self, game: Game, action: Tensor, drawn: Tensor) -> Played:
        """Moves the chicken and the cars."""
        walks = (game["pause"] == 0) & (
            (action == minatar.UP) | (action == minatar.DOWN)
        )
        y = ops.where(
            walks,
            minatar.moved_up(game["y"], action, 0, _BOTTOM),
            game["y"],
        )
        has_crossed = y == 0
        y = ops.where(has_crossed, _BOTTOM, y)
        speeds = ops.where(has_crossed, _speeds(drawn), game["speeds"])
        waits = ops.where(has_crossed, ops.abs(speeds), game["waits"])
        drives = waits == 0
        ahead = (game["cars"] + ops.sign(speeds)) % SIZE
        cars = ops.where(drives, ahead, game["cars"])
        # Both before a car drives and after it.
        meets = (game["cars"] == _COLUMN) | (cars == _COLUMN)
        is_hit = ops.any(meets & (y == _ROWS))
        pause = ops.where(walks, _PAUSE, game["pause"])
        after = {
            "y": ops.where(is_hit, _BOTTOM, y),
            "pause": ops.maximum(pause - 1, 0),
            "steps_left": game["steps_left"] - 1,
            "cars": cars,
            "speeds": speeds,
            "waits": ops.where(drives, ops.abs(speeds), waits - 1),
        }
        return after, has_crossed, after["steps_left"] < 0

    def _picture(self, game: Game) -> list[Any]:
        """Returns the channels; see `MinAtar`."""
        behind = (game["cars"] - ops.sign(game["speeds"])) % SIZE
        trails = minatar.in_lines(behind)
        slowness = ops.pad(ops.abs(game["speeds"]), (1, 1))[:, None]
        return [
            minatar.cell(game["y"], np.int32(_COLUMN)),
            minatar.in_lines(game["cars"]),
            *(trails & (slowness == steps) for steps in range(1, 1 + _SLOWEST)),
        ]


def _speeds(drawn: Any) -> Any:
    """Returns steps for each cell, negative to the left, from random numbers.

    Args:
        drawn: `[16]` float32.

    Returns:
        `[8]` int32.
    """
    steps = 1 + ops.cast(ops.floor(drawn[:_LINES] * _SLOWEST), "int32")
    return ops.where(drawn[_LINES:] < 0.5, -steps, steps)
