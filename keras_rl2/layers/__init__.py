"""Keras layers that agents and their networks use."""

from keras_rl2.layers.observation_normalization import ObservationNormalization
from keras_rl2.layers.state_dependent_noise import StateDependentNoise

__all__ = ["ObservationNormalization", "StateDependentNoise"]
