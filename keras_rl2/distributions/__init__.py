"""Distributions over actions, and the policy heads that make them.

A head belongs to an action space. It defines the width of the network's output,
makes the distribution from it, draws the noise for sampling, or random actions,
and converts the policy's own action to the environment's.

Letters: B is the batch, P the width of the network's output, A the number of
actions or action dimensions, K that of choices or switches side by side.
"""

from keras_rl2.distributions.bernoulli import Bernoulli
from keras_rl2.distributions.box_head import BoxHead
from keras_rl2.distributions.categorical import Categorical
from keras_rl2.distributions.categorical import argmax
from keras_rl2.distributions.composite import Composite
from keras_rl2.distributions.composite import MultiCategorical
from keras_rl2.distributions.composite_head import CompositeHead
from keras_rl2.distributions.composite_head import policy_head
from keras_rl2.distributions.discrete_head import DiscreteHead
from keras_rl2.distributions.distribution import Distribution
from keras_rl2.distributions.distribution import forbid
from keras_rl2.distributions.gaussian import DiagonalGaussian
from keras_rl2.distributions.gaussian import SquashedGaussian
from keras_rl2.distributions.multi_binary_head import MultiBinaryHead
from keras_rl2.distributions.multi_discrete_head import MultiDiscreteHead
from keras_rl2.distributions.policy_head import PolicyHead
from keras_rl2.distributions.standard_noise import StandardNoise

__all__ = [
    "Bernoulli",
    "BoxHead",
    "Categorical",
    "Composite",
    "CompositeHead",
    "DiagonalGaussian",
    "DiscreteHead",
    "Distribution",
    "MultiBinaryHead",
    "MultiCategorical",
    "MultiDiscreteHead",
    "PolicyHead",
    "SquashedGaussian",
    "StandardNoise",
    "argmax",
    "forbid",
    "policy_head",
]
