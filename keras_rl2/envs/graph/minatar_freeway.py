"""MinAtar's Freeway within a graph."""

from typing import Any

import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import minatar
from keras_rl2.envs.graph.minatar import SIZE
from keras_rl2.envs.graph.minatar import Game
from keras_rl2.envs.graph.minatar import Played

_COLUMN = 4
_START = SIZE - 1
_CARS = 8
_ROWS = np.arange(1, 1 + _CARS, dtype=np.int32)
_SLOWEST = 5
# Steps until the chicken moves again, and those of an episode.
_PAUSE, _STEPS = 3, 2500


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
    _numbers = 2 * _CARS

    def _begin(self, drawn: Tensor) -> Game:
        """Begins with all cars at the left side."""
        speeds = _speeds(drawn)
        return minatar.integers(y=_START, pause=_PAUSE, steps_left=_STEPS) | {
            "cars": ops.zeros((_CARS,), "int32"),
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
            minatar.moved_up(game["y"], action, 0, _START),
            game["y"],
        )
        has_crossed = y == 0
        y = ops.where(has_crossed, _START, y)
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
            "y": ops.where(is_hit, _START, y),
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
    steps = 1 + ops.cast(ops.floor(drawn[:_CARS] * _SLOWEST), "int32")
    return ops.where(drawn[_CARS:] < 0.5, -steps, steps)
