"""Keras layers that agents and their networks use."""

from keras_rl2.layers.observation_normalization import ObservationNormalization

__all__ = ["ObservationNormalization"]
