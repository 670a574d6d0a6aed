"""MinAtar's Asterix and Breakout within a graph."""

import abc
from typing import Any
from typing import TypeAlias

import gymnasium
import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv
from keras_rl2.envs.graph.graph_env import Outcome

# The parts of a game by their names, tensors of fixed shapes.
Game: TypeAlias = dict[str, Any]
# A game after a step, the reward, and whether it has ended.
Played: TypeAlias = tuple[Game, Any, Any]

# Rows and columns of the board.
_SIZE = 10
_INDICES = np.arange(_SIZE, dtype=np.int32)
# All actions of a game, by their numbers there.
_NOTHING, _LEFT, _UP, _RIGHT, _DOWN, _FIRE = range(6)

# Of Asterix: rows with one thing each, and steps between events.
_LINES = 8
_ROWS = np.arange(1, 1 + _LINES, dtype=np.int32)
_SPAWN_INTERVAL, _MOVE_INTERVAL, _RAMP_INTERVAL = 10, 5, 100

# Of Breakout.
_BOTTOM = _SIZE - 1
_WALL = np.zeros((_SIZE, _SIZE), np.bool_)
_WALL[1:4] = True


class MinAtar(GraphEnv):
    """A game of MinAtar, on a board of 10 by 10 cells.

    It equals the environment that MinAtar registers with Gymnasium by the id
    `MinAtar/…-v1`, but for one thing: an action is not repeated beyond the end
    of an episode.

    Args:
        sticky_action_prob: float. Probability of each step to repeat the last
            action in place of the given one. Defaults to `0.1`.
        difficulty_ramping: bool. Whether a game becomes more difficult the
            longer it lasts. Defaults to `True`.
        use_minimal_action_set: bool. Whether only the actions count that have
            an effect in the game, or all 6. Defaults to `True`.

    Reference:
        - [Young and Tian, 2019](https://arxiv.org/abs/1903.03176), whose rules
          and numbers these are.
    """

    _actions: tuple[int, ...]
    # Uniform random numbers that a game needs at its beginning or at a step.
    _numbers: int = 0

    def __init__(
        self,
        sticky_action_prob: float = 0.1,
        difficulty_ramping: bool = True,
        use_minimal_action_set: bool = True,
    ) -> None:
        self._sticky_action_prob = sticky_action_prob
        self._is_ramping = difficulty_ramping
        if not use_minimal_action_set:
            self._actions = tuple(range(6))
        self.action_space = gymnasium.spaces.Discrete(len(self._actions))
        self.observation_space = gymnasium.spaces.Box(
            0.0, 1.0, (_SIZE, _SIZE, 4), np.bool_
        )

    def reset(self, seed: Tensor) -> tuple[Game, Tensor]:
        """Begins a game; see `GraphEnv.reset`."""
        drawn = random_numbers.uniform(seed, (1 + self._numbers,))
        game = self._begin(drawn[1:])
        return game | _integers(action=_NOTHING), self._observed(game)

    def step(self, state: Game, action: Tensor, seed: Tensor) -> Outcome:
        """Takes one step of the game; see `GraphEnv.step`."""
        drawn = random_numbers.uniform(seed, (1 + self._numbers,))
        # A sum, since a look-up in a table is slow where it is mapped.
        is_chosen = action == np.arange(len(self._actions))
        table = np.array(self._actions, np.int32)
        action = ops.where(
            drawn[0] < self._sticky_action_prob,
            state["action"],
            ops.sum(ops.where(is_chosen, table, 0)),
        )
        game, reward, terminated = self._play(state, action, drawn[1:])
        reward = ops.cast(reward, "float32")
        game = game | {"action": action}
        return game, self._observed(game), reward, terminated, False

    def _observed(self, game: Game) -> Any:
        """Returns a game's observation, `[10, 10, 4]` bool."""
        return ops.stack(self._picture(game), axis=-1)

    @abc.abstractmethod
    def _begin(self, drawn: Tensor) -> Game:
        """Begins a game, with uniform random numbers `[N]` float32."""

    @abc.abstractmethod
    def _play(self, game: Game, action: Tensor, drawn: Tensor) -> Played:
        """Takes one step.

        Args:
            game: The game.
            action: `[]` int32. An action's number in the game.
            drawn: `[N]` float32. Uniform random numbers.
        """

    @abc.abstractmethod
    def _picture(self, game: Game) -> list[Any]:
        """Returns the channels of the observation, each `[10, 10]` bool."""


class Asterix(MinAtar):
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

    # These are all actions but to fire.
    _actions = tuple(range(_FIRE))
    _numbers = 3

    def _begin(self, drawn: Tensor) -> Game:
        """Begins in the middle of an empty board."""
        nowhere = ops.zeros((_LINES,), "bool")
        return _integers(
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
        x = _moved(game["x"], action, _LEFT, _RIGHT)
        y = _moved(game["y"], action, _UP, _DOWN)
        x, y = ops.clip(x, 0, _SIZE - 1), ops.clip(y, 1, _LINES)
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
        is_there = is_there & (columns >= 0) & (columns < _SIZE)
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
            _cell(game["y"], game["x"]),
            _in_lines(ops.where(is_there & ~is_gold, columns, -1)),
            _in_lines(ops.where(is_there, behind, -1)),
            _in_lines(ops.where(is_there & is_gold, columns, -1)),
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
            ops.where(is_from_left, 0, _SIZE - 1),
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


class Breakout(MinAtar):
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

    _actions = (_NOTHING, _LEFT, _RIGHT)
    _numbers = 1

    def _begin(self, drawn: Tensor) -> Game:
        """Begins with a whole wall, and the ball below it at either side."""
        is_left = drawn[0] < 0.5
        x = ops.where(is_left, 0, _BOTTOM)
        return _integers(paddle=4, y=3, trail_y=3, y_speed=1) | {
            "x": x,
            "trail_x": x,
            "x_speed": ops.where(is_left, 1, -1),
            "bricks": ops.convert_to_tensor(_WALL),
            "was_in_brick": ops.zeros((), "bool"),
        }

    def _play(self, game: Game, action: Tensor, drawn: Tensor) -> Played:
        """Moves the paddle and the ball by one cell."""
        paddle = _moved(game["paddle"], action, _LEFT, _RIGHT)
        paddle = ops.clip(paddle, 0, _SIZE - 1)
        x, y = game["x"] + game["x_speed"], game["y"] + game["y_speed"]
        is_aside, is_above = (x < 0) | (x >= _SIZE), y < 0
        x, y = ops.clip(x, 0, _SIZE - 1), ops.maximum(y, 0)
        bricks = game["bricks"]
        place = _cell(y, x)
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
            _cell(np.int32(_BOTTOM), game["paddle"]),
            _cell(game["y"], game["x"]),
            _cell(game["trail_y"], game["trail_x"]),
            game["bricks"],
        ]


def _integers(**values: int) -> Game:
    """Returns parts of a game that are scalars of int32."""
    return {k: ops.convert_to_tensor(np.int32(v)) for k, v in values.items()}


def _cell(y: Any, x: Any) -> Any:
    """Marks one cell of the board, `[10, 10]` bool."""
    return ops.logical_and(y == _INDICES[:, None], x == _INDICES)


def _in_lines(x: Tensor) -> Any:
    """Marks a column in each of the rows from 1 to 8, none for -1."""
    # From 1, for zeros to mean nothing: where it is mapped, TensorFlow pads by
    # zeros whatever the value.
    columns = ops.pad(x + 1, (1, 1))
    return columns[:, None] == _INDICES + 1


def _moved(place: Tensor, action: Tensor, back: int, forward: int) -> Any:
    """Moves a player by an action back or forward."""
    ahead = ops.cast(action == forward, "int32")
    return place + ahead - ops.cast(action == back, "int32")
