"""Networks of each of Keras' own layers that may stand in one.

Each has a layer of that kind between two dense layers. Its input is a vector, a
sequence, an image or integers, as that kind requires.
"""

import keras
import numpy as np
from gymnasium import spaces
from keras import layers

OBSERVATIONS = {
    "vector": spaces.Box(-1.0, 1.0, (8,), np.float32),
    "sequence": spaces.Box(-1.0, 1.0, (6, 4), np.float32),
    "image": spaces.Box(0, 255, (12, 12, 1), np.uint8),
    "integers": spaces.Box(0, 6, (3,), np.int32),
}


@keras.saving.register_keras_serializable(package="stock_layers")
def doubled(x):
    """The function of the `Lambda` layer."""
    return 2.0 * x


class SelfAttention(layers.Layer):
    """`MultiHeadAttention` of a sequence to itself."""

    def __init__(self, units, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.attention = layers.MultiHeadAttention(
            2, units // 2, dropout=dropout
        )

    def build(self, input_shape):
        self.attention.build(input_shape, input_shape)
        super().build(input_shape)

    def call(self, inputs, training=False):
        return self.attention(inputs, inputs, training=training)


def _rescaled():
    return layers.Rescaling(1 / 255)


LAYERS = {
    "Dense": ("vector", lambda n: [layers.Dense(n)]),
    "Dropout": ("vector", lambda n: [layers.Dropout(0.1)]),
    "GaussianNoise": ("vector", lambda n: [layers.GaussianNoise(0.1)]),
    "GaussianDropout": ("vector", lambda n: [layers.GaussianDropout(0.1)]),
    "AlphaDropout": ("vector", lambda n: [layers.AlphaDropout(0.1)]),
    "BatchNormalization": ("vector", lambda n: [layers.BatchNormalization()]),
    "LayerNormalization": ("vector", lambda n: [layers.LayerNormalization()]),
    "GroupNormalization": ("vector", lambda n: [layers.GroupNormalization(4)]),
    "UnitNormalization": ("vector", lambda n: [layers.UnitNormalization()]),
    "SpectralNormalization": (
        "vector",
        lambda n: [layers.SpectralNormalization(layers.Dense(n))],
    ),
    "Lambda": ("vector", lambda n: [layers.Lambda(doubled)]),
    "Embedding": (
        "integers",
        lambda n: [layers.Embedding(7, n), layers.Flatten()],
    ),
    "MultiHeadAttention": (
        "sequence",
        lambda n: [SelfAttention(n), layers.Flatten()],
    ),
    "MultiHeadAttention with dropout": (
        "sequence",
        lambda n: [SelfAttention(n, 0.1), layers.Flatten()],
    ),
    "Conv1D": ("sequence", lambda n: [layers.Conv1D(n, 3), layers.Flatten()]),
    "Conv2D": (
        "image",
        lambda n: [_rescaled(), layers.Conv2D(n, 3, 2), layers.Flatten()],
    ),
    "LSTM": ("sequence", lambda n: [layers.LSTM(n)]),
    "LSTM with dropout": ("sequence", lambda n: [layers.LSTM(n, dropout=0.1)]),
    "GRU": ("sequence", lambda n: [layers.GRU(n)]),
    "SimpleRNN": ("sequence", lambda n: [layers.SimpleRNN(n)]),
    "Rescaling": ("image", lambda n: [_rescaled(), layers.Flatten()]),
}
"""What is observed, and a function from a width to the layers, by name."""


def network(name, units, width=8, actions=None):
    """Makes a network with a layer in it.

    Args:
        name: str. Of `LAYERS`.
        units: int. Of the output.
        width: int. Of the layers. Defaults to `8`.
        actions: int or None. Width of the actions beside the observation; None
            for a network of observations. Defaults to `None`.
    """
    kind, make = LAYERS[name]
    inputs = [keras.Input(OBSERVATIONS[kind].shape)]
    x = inputs[0]
    if kind == "vector":
        x = layers.Dense(width, "tanh")(x)
    for layer in make(width):
        x = layer(x)
    if actions is not None:
        inputs.append(keras.Input((actions,)))
        x = layers.Concatenate()([x, inputs[1]])
    x = layers.Dense(width, "tanh")(x)
    outputs = layers.Dense(units)(x)
    return keras.Model(inputs if actions is not None else inputs[0], outputs)
