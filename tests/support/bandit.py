"""The bandit of the probe: an episode is one choice."""

import gymnasium
import numpy as np
from keras import ops

import keras_rl2 as rl
from keras_rl2.envs.graph import random_numbers


class GaussianBandit(rl.envs.GraphEnv):
    """Two arms that pay N(10, 15) and N(0, 1); the first is right.

    The observation is a payoff of each arm; the reward is 1 for the right one.
    """

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed):
        noise = random_numbers.normal(seed, (2,))
        payoffs = ops.array([10.0, 0.0]) + ops.array([15.0, 1.0]) * noise
        return payoffs, payoffs

    def step(self, state, action, seed):
        return state, state, ops.cast(action == 0, "float32"), True, False
