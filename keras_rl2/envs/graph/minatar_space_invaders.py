"""MinAtar's Space Invaders within a graph."""

from typing import Any

import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import minatar
from keras_rl2.envs.graph.minatar import SIZE
from keras_rl2.envs.graph.minatar import Game
from keras_rl2.envs.graph.minatar import Played

_BOTTOM = SIZE - 1
_COLUMNS = np.arange(SIZE, dtype=np.int32)
_WAVE = np.zeros((SIZE, SIZE), np.bool_)
_WAVE[:4, 2:8] = True
_PAUSE = 5
_ALIEN_INTERVAL, _SHORTEST_INTERVAL = 12, 6
_SHOT_INTERVAL = 10


class SpaceInvaders(minatar.MinAtar):
    """A cannon shoots aliens, which come nearer and shoot back.

    It equals `MinAtar/SpaceInvaders-v1`. The channels are cannon, aliens,
    aliens that go left, aliens that go right, bullets of the player, and those
    of the aliens. Each alien that is shot gives a reward of 1. The fewer there
    are, the faster they go, and each new wave is faster than the last.

    Args:
        sticky_action_prob: float. Probability of each step to repeat the last
            action in place of the given one. Defaults to `0.1`.
        difficulty_ramping: bool. Whether a new wave is faster than the last.
            Defaults to `True`.
        use_minimal_action_set: bool. Whether there are 4 actions, nothing,
            left, right and fire, or all 6. Defaults to `True`.

    Example:

    >>> env = SpaceInvaders()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([10, 10, 6])
    """

    _actions = (minatar.NOTHING, minatar.LEFT, minatar.RIGHT, minatar.FIRE)
    _channels = 6

    def _begin(self, drawn: Tensor) -> Game:
        """Begins with a whole wave, which goes to the left."""
        empty = ops.zeros((SIZE, SIZE), "bool")
        return minatar.integers(
            x=5,
            direction=-1,
            pause=0,
            interval=_ALIEN_INTERVAL,
            move_timer=_ALIEN_INTERVAL,
            shot_timer=_SHOT_INTERVAL,
        ) | {
            "aliens": ops.convert_to_tensor(_WAVE),
            "bullets": empty,
            "alien_bullets": empty,
        }

    def _play(self, game: Game, action: Tensor, drawn: Tensor) -> Played:
        """Moves the cannon, then bullets, then aliens."""
        x = minatar.moved_aside(game["x"], action)
        cannon = minatar.cell(np.int32(_BOTTOM), x)
        fires = (action == minatar.FIRE) & (game["pause"] == 0)
        bullets = ops.concatenate(
            [game["bullets"][1:], ops.zeros((1, SIZE), "bool")]
        )
        # A bullet leaves the cannon at once.
        bullets = bullets | (fires & minatar.cell(np.int32(_BOTTOM - 1), x))
        alien_bullets = ops.concatenate(
            [ops.zeros((1, SIZE), "bool"), game["alien_bullets"][:-1]]
        )
        is_hit = ops.any((alien_bullets | game["aliens"]) & cannon)
        game, has_landed = _marched(game)
        is_hit = is_hit | has_landed | ops.any(game["aliens"] & cannon)
        shoots = game["shot_timer"] == 0
        alien_bullets = alien_bullets | (shoots & _shooter(game["aliens"], x))
        shot = game["aliens"] & bullets
        pause = ops.where(fires, _PAUSE, game["pause"])
        shot_timer = ops.where(shoots, _SHOT_INTERVAL, game["shot_timer"])
        after = game | {
            "x": x,
            "pause": ops.maximum(pause - 1, 0),
            "move_timer": game["move_timer"] - 1,
            "shot_timer": shot_timer - 1,
            "aliens": game["aliens"] & ~shot,
            "bullets": bullets & ~shot,
            "alien_bullets": alien_bullets,
        }
        reward = ops.sum(ops.cast(shot, "float32"))
        return self._with_new_wave(after), reward, is_hit

    def _with_new_wave(self, game: Game) -> Game:
        """Begins a new wave where no alien is left."""
        is_over = ~ops.any(game["aliens"])
        interval = game["interval"]
        if self._is_ramping:
            interval = ops.where(
                is_over, ops.maximum(interval - 1, _SHORTEST_INTERVAL), interval
            )
        aliens = game["aliens"] | (is_over & _WAVE)
        return game | {"interval": interval, "aliens": aliens}

    def _picture(self, game: Game) -> list[Any]:
        """Returns the channels; see `MinAtar`."""
        goes_left = game["direction"] < 0
        return [
            minatar.cell(np.int32(_BOTTOM), game["x"]),
            game["aliens"],
            game["aliens"] & goes_left,
            game["aliens"] & ~goes_left,
            game["bullets"],
            game["alien_bullets"],
        ]


def _marched(game: Game) -> tuple[Game, Any]:
    """Moves the aliens, if it is time.

    Args:
        game: The game.

    Returns:
        The game after it, and whether aliens have come below the last row.
    """
    aliens, direction = game["aliens"], game["direction"]
    moves = game["move_timer"] == 0
    edge = ops.where(direction < 0, aliens[:, 0], aliens[:, -1])
    turns = moves & ops.any(edge)
    has_landed = turns & ops.any(aliens[_BOTTOM])
    down = ops.concatenate([aliens[-1:], aliens[:-1]])
    left = ops.concatenate([aliens[:, 1:], aliens[:, :1]], axis=1)
    right = ops.concatenate([aliens[:, -1:], aliens[:, :-1]], axis=1)
    aside = ops.where(direction < 0, left, right)
    count = ops.sum(ops.cast(aliens, "int32"))
    timer = ops.where(
        moves, ops.minimum(count, game["interval"]), game["move_timer"]
    )
    after = game | {
        "aliens": ops.where(turns, down, ops.where(moves, aside, aliens)),
        "direction": ops.where(turns, -direction, direction),
        "move_timer": timer,
    }
    return after, has_landed


def _shooter(aliens: Any, x: Any) -> Any:
    """Marks the lowest alien of the column that is nearest to the cannon."""
    # Of two columns as near, the left one.
    distance = 2 * ops.abs(_COLUMNS - x) + ops.cast(x < _COLUMNS, "int32")
    distance = ops.where(ops.any(aliens, axis=0), distance, 2 * SIZE)
    is_nearest = distance == ops.min(distance)
    height = ops.where(aliens, _COLUMNS[:, None], -1)
    is_lowest = height == ops.max(height, axis=0)
    return aliens & is_nearest & is_lowest
