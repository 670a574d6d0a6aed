"""Exploration noise, added to the actions of a deterministic policy.

Noise is in the units of the unit box, [-1, 1] in each dimension, so that one
scale fits every environment: 1 is half the range of an action. The objects hold
settings only; randomness comes from a NumPy generator, and the state of a
correlated process is an argument and a return value.

Letters: T is time, B the environments, A the number of action dimensions.
"""

from keras_rl2.exploration.noises import ExplorationNoise
from keras_rl2.exploration.noises import GaussianNoise
from keras_rl2.exploration.noises import OrnsteinUhlenbeckNoise
from keras_rl2.exploration.noises import PinkNoise
from keras_rl2.exploration.noises import exploration_noise

__all__ = [
    "ExplorationNoise",
    "GaussianNoise",
    "OrnsteinUhlenbeckNoise",
    "PinkNoise",
    "exploration_noise",
]
