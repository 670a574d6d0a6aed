"""The noise of policies, and exploration noise that is added to actions.

Exploration noise is in the units of the unit box, [-1, 1] in each dimension, so
that one scale fits every environment: 1 is half the range of an action. The
objects hold settings only; randomness comes from a NumPy generator, and the
state of a correlated process is an argument and a return value.

Letters: T is time, B the environments, A the number of action dimensions.
"""

from keras_rl2.exploration.joined_noise import JoinedNoise
from keras_rl2.exploration.noises import AddedNoise
from keras_rl2.exploration.noises import ExplorationNoise
from keras_rl2.exploration.noises import GaussianNoise
from keras_rl2.exploration.noises import OrnsteinUhlenbeckNoise
from keras_rl2.exploration.noises import PinkNoise
from keras_rl2.exploration.noises import exploration_noise
from keras_rl2.exploration.policy_noise import PolicyNoise

__all__ = [
    "AddedNoise",
    "ExplorationNoise",
    "GaussianNoise",
    "JoinedNoise",
    "OrnsteinUhlenbeckNoise",
    "PinkNoise",
    "PolicyNoise",
    "exploration_noise",
]
