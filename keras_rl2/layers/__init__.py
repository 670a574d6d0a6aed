"""Keras layers that agents and their networks use."""

from keras_rl2.layers.monte_carlo_dropout import MonteCarloDropout
from keras_rl2.layers.noisy_dense import NoisyDense
from keras_rl2.layers.noisy_dense import noise_given
from keras_rl2.layers.observation_normalization import ObservationNormalization

__all__ = [
    "MonteCarloDropout",
    "NoisyDense",
    "ObservationNormalization",
    "noise_given",
]
