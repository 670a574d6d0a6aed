"""Keras metrics of training."""

from keras_rl2.metrics.mean_of_each import MeanOfEach

__all__ = ["MeanOfEach"]
