"""A task of memory within a graph."""

import gymnasium
import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv


class MemoryChain(GraphEnv):
    """A bit is shown in the first step, and asked for in the last one.

    The observation is the share of time that is left, whether the bit is asked
    for, and the bit as -1 or 1, which is 0 after the first step. The reward of
    the last step is 1 for the right answer and -1 for the wrong one.

    Args:
        length: int. Steps of an episode. Defaults to `10`.

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

    def step(
        self, state: Tensor, action: Tensor, seed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Lets time pass, or takes the answer; see `GraphEnv.step`."""
        time, bit = ops.unstack(state)
        time = time + 1
        terminated = time == self._length
        answer = ops.where(ops.cast(action, "int32") == bit, 1.0, -1.0)
        reward = ops.where(terminated, answer, 0.0)
        state = ops.stack([time, bit])
        no = ops.zeros((), "bool")
        return state, self._observed(state), reward, terminated, no

    def _observed(self, state: Tensor) -> Tensor:
        """Returns the observation of a state."""
        time, bit = ops.unstack(ops.cast(state, "float32"))
        left = 1.0 - time / self._length
        is_asked = ops.where(time == self._length - 1, 1.0, 0.0)
        shown = ops.where(time == 0, 2.0 * bit - 1.0, 0.0)
        observation: Tensor = ops.stack([left, is_asked, shown])
        return observation
