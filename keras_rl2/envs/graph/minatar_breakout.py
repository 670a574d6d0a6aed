"""MinAtar's Breakout within a graph."""

from typing import Any

import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import minatar
from keras_rl2.envs.graph.minatar import SIZE
from keras_rl2.envs.graph.minatar import Game
from keras_rl2.envs.graph.minatar import Played

_BOTTOM = SIZE - 1
_WALL = np.zeros((SIZE, SIZE), np.bool_)
_WALL[1:4] = True


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
        breaks = is_in_brick & ops.logical_not(game["was_in_brick"])
        bricks = bricks & ops.logical_not(place & breaks)
        is_low = y == _BOTTOM
        bricks = bricks | (_WALL & is_low & ops.logical_not(ops.any(bricks)))
        is_straight = is_low & (game["x"] == paddle)
        is_corner = is_low & ops.logical_not(is_straight) & (x == paddle)
        bounces = breaks | is_straight | is_corner
        after = {
            "paddle": paddle,
            "x": x,
            "y": ops.where(bounces, game["y"], y),
            "trail_x": game["x"],
            "trail_y": game["y"],
            "x_speed": _turned(game["x_speed"], is_aside ^ is_corner),
            "y_speed": _turned(game["y_speed"], is_above | bounces),
            "bricks": bricks,
            "was_in_brick": is_in_brick,
        }
        return after, breaks, is_low & ops.logical_not(bounces)

    def _picture(self, game: Game) -> list[Any]:
        """Returns the channels; see `MinAtar`."""
        return [
            minatar.cell(np.int32(_BOTTOM), game["paddle"]),
            minatar.cell(game["y"], game["x"]),
            minatar.cell(game["trail_y"], game["trail_x"]),
            game["bricks"],
        ]


def _turned(speed: Any, is_turned: Any) -> Any:
    """Returns a speed, in the opposite direction where it says so."""
    return ops.where(is_turned, -speed, speed)
