"""MinAtar's Asterix within a graph."""

from typing import Any

import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import minatar
from keras_rl2.envs.graph.minatar import SIZE
from keras_rl2.envs.graph.minatar import Game
from keras_rl2.envs.graph.minatar import Played

_LINES = 8
_ROWS = np.arange(1, 1 + _LINES, dtype=np.int32)
_SPAWN_INTERVAL, _MOVE_INTERVAL, _RAMP_INTERVAL = 10, 5, 100


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
