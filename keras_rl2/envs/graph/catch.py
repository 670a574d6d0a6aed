"""Catch within a graph: a small picture, and a paddle."""

import gymnasium
import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv


class Catch(GraphEnv):
    """A ball falls down a board, and a paddle in the last row is to catch it.

    The observation is a picture of the board, 255 where ball and paddle are.
    The reward is 1 for a ball that is caught, -1 for one that is missed, and 0
    before.

    Args:
        rows: int. Height of the board. Defaults to `10`.
        columns: int. Width of the board. Defaults to `5`.

    Example:

    >>> env = Catch()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape, int(ops.max(observation))
    (TensorShape([10, 5, 1]), 255)

    Reference:
        - [Osband et al., 2020](https://arxiv.org/abs/1908.03568), bsuite
    """

    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, rows: int = 10, columns: int = 5) -> None:
        self._rows, self._columns = rows, columns
        shape = (rows, columns, 1)
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Drops a ball, with the paddle in the middle."""
        ball = random_numbers.integers(seed, (), 0, self._columns)
        middle = ops.full((), self._columns // 2, "int32")
        state = ops.stack([ops.zeros_like(ball), ball, middle])
        return state, self._picture(state)

    def step(
        self, state: Tensor, action: Tensor, seed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Moves the paddle and drops the ball by a row; see `GraphEnv.step`."""
        row, ball, paddle = ops.unstack(state)
        move = ops.cast(action, "int32") - 1
        paddle = ops.clip(paddle + move, 0, self._columns - 1)
        row = row + 1
        terminated = row == self._rows - 1
        outcome = ops.where(ball == paddle, 1.0, -1.0)
        reward = ops.where(terminated, outcome, 0.0)
        state = ops.stack([row, ball, paddle])
        no = ops.zeros((), "bool")
        return state, self._picture(state), reward, terminated, no

    def _picture(self, state: Tensor) -> Tensor:
        """Draws the board."""
        row, ball, paddle = ops.unstack(state)
        rows = ops.arange(self._rows, dtype="int32")[:, None]
        columns = ops.arange(self._columns, dtype="int32")[None, :]
        lit = ((rows == row) & (columns == ball)) | (
            (rows == self._rows - 1) & (columns == paddle)
        )
        picture: Tensor = ops.cast(lit, "uint8")[..., None] * 255
        return picture
