"""Keras layers that agents and their networks use."""

from keras_rl2.layers.monte_carlo_dropout import MonteCarloDropout
from keras_rl2.layers.noisy_dense import NoisyDense
from keras_rl2.layers.noisy_dense import noise_given
from keras_rl2.layers.observation_normalization import ObservationNormalization
from keras_rl2.layers.state_dependent_noise import StateDependentNoise

__all__ = [
    "MonteCarloDropout",
    "NoisyDense",
    "ObservationNormalization",
    "StateDependentNoise",
    "noise_given",
]
