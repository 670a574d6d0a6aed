"""Fully connected networks."""

from collections.abc import Sequence

import keras

from keras_rl2.networks.building import Initialization
from keras_rl2.networks.building import fully_connected
from keras_rl2.networks.building import vector_of


def mlp(
    input_shape: Sequence[int],
    units: int | Sequence[int],
    *,
    hidden: Sequence[int] = (64, 64),
    activation: str = "tanh",
    output_gain: float = 1.0,
    normalize_observations: bool = False,
    normalization: str = "none",
    scale: float = 1.0,
    initialization: str = "orthogonal",
    seed: int | None = None,
    name: str = "mlp",
) -> keras.Model:
    """Builds a fully connected network.

    Orthogonal weights with a small gain in the last layer of a policy are
    among the details of PPO that matter (Andrychowicz et al., 2021).

    Args:
        input_shape: Sequence of ints. Shape of one observation.
        units: int. Width of the output. Or a sequence of ints, for streams
            of these widths side by side in the output, each with the last
            hidden layer for itself: the dueling networks of `DQN`.
        hidden: Sequence of ints. Widths of the hidden layers. Defaults to
            `(64, 64)`.
        activation: str. Activation of the hidden layers. Defaults to `"tanh"`.
        output_gain: float. Gain of the last layer's weights: 0.01 for a
            policy, 1 for a value. Defaults to `1.0`.
        normalize_observations: bool. Whether an `ObservationNormalization`
            layer comes first. Defaults to `False`.
        normalization: str. Normalization of the hidden layers. `"layer"`: a
            `keras.layers.LayerNormalization` before each activation.
            `"batch"`: a `BatchNormalization` before each dense layer, the
            first and the last included. `"spectral"`: a
            `SpectralNormalization` around each hidden layer, whose weights
            have a largest singular value of 1. Defaults to `"none"`.
        scale: float. Factor of observations, e.g. 1/255 for bytes. Defaults to
            `1.0`.
        initialization: str. Initial weights: `"orthogonal"`, with biases of
            0; or `"fan_in"`, uniform within ±1/√fan_in, biases too. Defaults
            to `"orthogonal"`.
        seed: int or None. Seed of the initial weights. Defaults to `None`.
        name: str. Name of the model. Defaults to `"mlp"`.

    Returns:
        A `keras.Model` from `[B, *input_shape]` to `[B, units]`, or to the
        sum of all units.

    Example:

    >>> mlp((4,), 2, seed=0).output_shape
    (None, 2)
    >>> mlp((4,), (1, 2), seed=0).output_shape
    (None, 3)

    Reference:
        - [Andrychowicz et al., 2021](https://arxiv.org/abs/2006.05990).
        - [Wang et al., 2016](https://arxiv.org/abs/1511.06581), streams.
        - [Ba et al., 2016](https://arxiv.org/abs/1607.06450), layer
          normalization.
        - [Bhatt et al., 2024](https://openreview.net/forum?id=PczQtTsTIX),
          batch normalization before each dense layer.
        - [Gogianu et al., 2021](https://arxiv.org/abs/2105.05246), spectral
          normalization.
    """
    start = Initialization(initialization, seed)
    inputs = keras.Input(tuple(input_shape), name="observation")
    outputs = fully_connected(
        vector_of(inputs, normalize_observations, scale),
        hidden,
        activation,
        units,
        start,
        output_gain=output_gain,
        normalization=normalization,
    )
    return keras.Model(inputs, outputs, name=name)
