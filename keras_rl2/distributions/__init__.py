"""Distributions over actions, made from a network's output.

Letters: B is the batch, A the number of actions or action dimensions, K that
of choices or switches side by side.
"""

from keras_rl2.distributions.bernoulli import Bernoulli
from keras_rl2.distributions.categorical import Categorical
from keras_rl2.distributions.composite import Composite
from keras_rl2.distributions.diagonal_gaussian import DiagonalGaussian
from keras_rl2.distributions.distribution import Distribution
from keras_rl2.distributions.distribution import forbid
from keras_rl2.distributions.multi_categorical import MultiCategorical
from keras_rl2.distributions.squashed_gaussian import SquashedGaussian

__all__ = [
    "Bernoulli",
    "Categorical",
    "Composite",
    "DiagonalGaussian",
    "Distribution",
    "MultiCategorical",
    "SquashedGaussian",
    "forbid",
]
