"""Losses and diagnostics, one number per example.

Pure functions of arrays of shape `[B]`, or `[B, A]` and `[B, N]` for values of
each action or atom of a distribution, or `[B, C]` for log-probabilities of each
component of an action. Nothing is reduced over the batch (the agent averages,
so that it can weigh or mask examples first) and nothing is broadcast: `[B, 1]`
beside `[B]` raises. Half precision is cast up to float32. Targets count as
constants under gradient.

Letters: B is the batch, A the number of actions, N that of atoms, C that of
components of an action, such as the numbers of a MultiDiscrete, or tokens.
"""

from keras_rl2.losses.policy import advantage_weight
from keras_rl2.losses.policy import behavior_regularized_value
from keras_rl2.losses.policy import clipped_surrogate
from keras_rl2.losses.policy import policy_gradient
from keras_rl2.losses.policy import temperature_loss
from keras_rl2.losses.statistics import approximate_kl
from keras_rl2.losses.statistics import clip_fraction
from keras_rl2.losses.statistics import explained_variance
from keras_rl2.losses.value import clipped_value
from keras_rl2.losses.value import conservative_q
from keras_rl2.losses.value import double_q_learning
from keras_rl2.losses.value import expected_soft_value
from keras_rl2.losses.value import expectile
from keras_rl2.losses.value import huber
from keras_rl2.losses.value import q_learning
from keras_rl2.losses.value import sampled_conservative_q
from keras_rl2.losses.value import soft_value
from keras_rl2.losses.value_distributions import ValueDistribution
from keras_rl2.losses.value_distributions import categorical_projection
from keras_rl2.losses.value_distributions import quantile_huber
from keras_rl2.losses.value_distributions import value_distribution

__all__ = [
    "ValueDistribution",
    "advantage_weight",
    "approximate_kl",
    "behavior_regularized_value",
    "categorical_projection",
    "clip_fraction",
    "clipped_surrogate",
    "clipped_value",
    "conservative_q",
    "double_q_learning",
    "expected_soft_value",
    "expectile",
    "explained_variance",
    "huber",
    "policy_gradient",
    "q_learning",
    "quantile_huber",
    "sampled_conservative_q",
    "soft_value",
    "temperature_loss",
    "value_distribution",
]
