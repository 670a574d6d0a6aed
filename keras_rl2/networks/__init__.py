"""Builders of networks, and what algorithms do with networks.

Each builder returns a plain `keras.Model`.
The library does not depend on them: an agent takes any Keras model with an
input that fits the observation and an output that fits the action space.
"""

from keras_rl2.networks.building import mlp
from keras_rl2.networks.for_space import critic_for
from keras_rl2.networks.for_space import encoder_for
from keras_rl2.networks.for_space import joined_network
from keras_rl2.networks.for_space import network_for
from keras_rl2.networks.inputs import run_network
from keras_rl2.networks.memory import MemoryNetwork
from keras_rl2.networks.memory import with_memory
from keras_rl2.networks.model_layers import features
from keras_rl2.networks.network_copies import copy_of
from keras_rl2.networks.network_copies import sibling
from keras_rl2.networks.pictures import nature_cnn
from keras_rl2.networks.pictures import small_cnn
from keras_rl2.spaces.supported import is_image

__all__ = [
    "MemoryNetwork",
    "copy_of",
    "critic_for",
    "encoder_for",
    "features",
    "is_image",
    "joined_network",
    "mlp",
    "nature_cnn",
    "network_for",
    "run_network",
    "sibling",
    "small_cnn",
    "with_memory",
]
