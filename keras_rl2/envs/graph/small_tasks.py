"""Small tasks within a graph, each of one difficulty."""

from typing import Any

import gymnasium
import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv
from keras_rl2.envs.graph.graph_env import Outcome


class Catch(GraphEnv):
    """A ball falls down a board, and a paddle in the last row is to catch it.

    The observation is a picture of the board, 255 where ball and paddle are.
    The reward is 1 for a ball that is caught, -1 for one that is missed, and 0
    before.

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

    def step(self, state: Tensor, action: Tensor, seed: Tensor) -> Outcome:
        """Moves the paddle and drops the ball by a row; see `GraphEnv.step`."""
        row, ball, paddle = ops.unstack(state)
        move = ops.cast(action, "int32") - 1
        paddle = ops.clip(paddle + move, 0, self._columns - 1)
        row = row + 1
        terminated = row == self._rows - 1
        outcome = ops.where(ball == paddle, 1.0, -1.0)
        reward = ops.where(terminated, outcome, 0.0)
        state = ops.stack([row, ball, paddle])
        return state, self._picture(state), reward, terminated, False

    def _picture(self, state: Tensor) -> Any:
        """Draws the board."""
        row, ball, paddle = ops.unstack(state)
        rows = ops.arange(self._rows, dtype="int32")[:, None]
        columns = ops.arange(self._columns, dtype="int32")[None, :]
        is_ball = (rows == row) & (columns == ball)
        is_paddle = (rows == self._rows - 1) & (columns == paddle)
        return ops.cast(is_ball | is_paddle, "uint8")[..., None] * 255


class MemoryChain(GraphEnv):
    """A bit is shown in the first step, and asked for in the last one.

    The observation is the share of time that is left, whether the bit is asked
    for, and the bit as -1 or 1, which is 0 after the first step. The reward of
    the last step is 1 for the right answer and -1 for the wrong one.

    Example:

    >>> env = MemoryChain()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([3])

    Reference:
        - [Osband et al., 2020](https://arxiv.org/abs/1908.03568), bsuite
    """

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length: int = 10) -> None:
        self._length = length

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Shows the bit."""
        bit = random_numbers.integers(seed, (), 0, 2)
        state = ops.stack([ops.zeros_like(bit), bit])
        return state, self._observed(state)

    def step(self, state: Tensor, action: Tensor, seed: Tensor) -> Outcome:
        """Lets time pass, or takes the answer; see `GraphEnv.step`."""
        time, bit = ops.unstack(state)
        time = time + 1
        terminated = time == self._length
        answer = ops.where(ops.cast(action, "int32") == bit, 1.0, -1.0)
        reward = ops.where(terminated, answer, 0.0)
        state = ops.stack([time, bit])
        return state, self._observed(state), reward, terminated, False

    def _observed(self, state: Tensor) -> Any:
        """Returns the observation of a state."""
        time, bit = ops.unstack(ops.cast(state, "float32"))
        left = 1.0 - time / self._length
        is_asked = ops.where(time == self._length - 1, 1.0, 0.0)
        shown = ops.where(time == 0, 2.0 * bit - 1.0, 0.0)
        return ops.stack([left, is_asked, shown])
