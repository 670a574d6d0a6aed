"""The Gaussian bandit within a graph."""

from collections.abc import Sequence

import gymnasium
import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GraphEnv


class GaussianBandit(GraphEnv):
    """A bandit whose payoffs are seen before an arm is chosen.

    Each episode is one choice. The observation is a payoff of each arm, drawn
    anew; the reward is 1 for the arm of the highest mean, and 0 for others.

    Args:
        means: Sequence of float. Mean payoff of each arm. Defaults to
            `(10.0, 0.0)`.
        deviations: Sequence of float. Standard deviations of the payoffs.
            Defaults to `(15.0, 1.0)`.

    Example:

    >>> env = GaussianBandit()
    >>> state, observation = env.reset(ops.convert_to_tensor([0, 1], "uint32"))
    >>> observation.shape
    TensorShape([2])
    """

    def __init__(
        self,
        means: Sequence[float] = (10.0, 0.0),
        deviations: Sequence[float] = (15.0, 1.0),
    ) -> None:
        if len(means) != len(deviations):
            raise ValueError(
                "Expected a standard deviation for each mean. Received: "
                f"means={means}, deviations={deviations}"
            )
        self._means = np.array(means, np.float32)
        self._deviations = np.array(deviations, np.float32)
        shape = self._means.shape
        self.observation_space = gymnasium.spaces.Box(
            -np.inf, np.inf, shape, np.float32
        )
        self.action_space = gymnasium.spaces.Discrete(len(self._means))

    def reset(self, seed: Tensor) -> tuple[Tensor, Tensor]:
        """Draws the payoffs."""
        noise = random_numbers.normal(seed, self._means.shape)
        payoffs = self._means + self._deviations * noise
        return payoffs, payoffs

    def step(
        self, state: Tensor, action: Tensor, seed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Rewards the choice; see `GraphEnv.step`."""
        mean = ops.take(ops.convert_to_tensor(self._means), action)
        best = mean == float(self._means.max())
        reward = ops.cast(best, "float32")
        return state, state, reward, ops.ones((), "bool"), ops.zeros((), "bool")
