"""The games of MinAtar within a graph: their common part."""

import abc
from typing import Any
from typing import TypeAlias

import gymnasium
import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv
from keras_rl2.envs.graph.graph_env import Outcome

#: The parts of a game by their names, tensors of fixed shapes.
Game: TypeAlias = dict[str, Any]
#: A game after a step, the reward, and whether it has ended.
Played: TypeAlias = tuple[Game, Any, Any]

#: Rows and columns of the board.
SIZE = 10
#: All actions of a game, by their numbers there.
NOTHING, LEFT, UP, RIGHT, DOWN, FIRE = range(6)

_INDICES = np.arange(SIZE, dtype=np.int32)


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
    _channels: int
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
            0.0, 1.0, (SIZE, SIZE, self._channels), np.bool_
        )

    def reset(self, seed: Tensor) -> tuple[Game, Tensor]:
        """Begins a game; see `GraphEnv.reset`."""
        drawn = random_numbers.uniform(seed, (1 + self._numbers,))
        game = self._begin(drawn[1:])
        return game | {"action": _integer(NOTHING)}, self._observed(game)

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
        """Returns a game's observation, `[10, 10, channels]` bool."""
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


def _integer(value: int) -> Any:
    """Returns a constant scalar of int32."""
    return ops.convert_to_tensor(np.int32(value))


def integers(**values: int) -> Game:
    """Returns parts of a game that are integers.

    Args:
        **values: int. Names and values.

    Returns:
        dict of scalars int32.

    Example:

    >>> integers(x=4)["x"].dtype
    tf.int32
    """
    return {name: _integer(value) for name, value in values.items()}


def cell(y: TensorLike, x: TensorLike) -> Any:
    """Marks cells of the board.

    Args:
        y: `[...]` int32. Rows. None is marked where it is beyond the board.
        x: `[...]` int32. Columns.

    Returns:
        `[..., 10, 10]` bool.

    Example:

    >>> np.argwhere(cell(np.array(2), np.array(7)))
    array([[2, 7]])
    """
    rows = ops.expand_dims(y, (-2, -1)) == _INDICES[:, None]
    columns = ops.expand_dims(x, (-2, -1)) == _INDICES
    return ops.logical_and(rows, columns)


def in_lines(x: TensorLike) -> Any:
    """Marks one cell in each of the rows from 1 to 8.

    Args:
        x: `[8]` int32. Columns. None is marked where it is beyond the board.

    Returns:
        `[10, 10]` bool.

    Example:

    >>> marked = in_lines(np.array([3, -1, -1, -1, -1, -1, -1, 9]))
    >>> np.argwhere(marked)
    array([[1, 3],
           [8, 9]])
    """
    # From 1, for zeros to mean nothing: where it is mapped, TensorFlow pads by
    # zeros whatever the value.
    columns = ops.pad(ops.add(x, 1), (1, 1))
    return columns[:, None] == _INDICES + 1


def moved_aside(x: Tensor, action: Tensor) -> Any:
    """Moves a player to the left or to the right, on the board.

    Args:
        x: `[]` int32. Column.
        action: `[]` int32.

    Returns:
        `[]` int32.

    Example:

    >>> int(moved_aside(np.int32(9), np.int32(RIGHT)))
    9
    """
    return ops.clip(x + _sign(action, LEFT, RIGHT), 0, SIZE - 1)


def moved_up(y: Tensor, action: Tensor, least: int, most: int) -> Any:
    """Moves a player up or down, within bounds.

    Args:
        y: `[]` int32. Row.
        action: `[]` int32.
        least: int. First row.
        most: int. Last row.

    Returns:
        `[]` int32.
    """
    return ops.clip(y + _sign(action, UP, DOWN), least, most)


def _sign(action: Tensor, back: int, forward: int) -> Any:
    """Returns -1 for an action back, 1 for one forward, and else 0."""
    return ops.cast(action == forward, "int32") - ops.cast(
        action == back, "int32"
    )
