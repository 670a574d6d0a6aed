"""Networks of Dict and Tuple observations: an encoder for each array."""

import re
from collections.abc import Sequence
from typing import Any

import gymnasium
import keras
import numpy as np

from keras_rl2.basics.shapes import Tensor
from keras_rl2.layers import ObservationNormalization
from keras_rl2.networks.building import DATA_FORMAT
from keras_rl2.networks.building import check_arguments
from keras_rl2.networks.building import dense
from keras_rl2.networks.building import fully_connected
from keras_rl2.networks.initialization import Initialization
from keras_rl2.networks.pictures import picture_features
from keras_rl2.networks.pictures import pixels
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import input_name
from keras_rl2.spaces.supported import is_image
from keras_rl2.spaces.supported import network_shape
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import named_leaves

# Number of features of each picture.
_PICTURE_UNITS = 256


def joined_network(
    observation_space: gymnasium.Space[Any],
    units: int | Sequence[int],
    *,
    hidden: Sequence[int] = (64, 64),
    activation: str = "tanh",
    output_gain: float = 1.0,
    normalize_observations: bool = False,
    normalization: str = "none",
    initialization: str = "orthogonal",
    seed: int | None = None,
    name: str = "joined_network",
) -> keras.Model:
    """Builds a network for all arrays of a Dict or Tuple observation.

    Pictures go through convolutions and a layer of 256 units. Their features
    and all other arrays are concatenated, and a fully connected network
    follows. An action mask is left out.

    Args:
        observation_space: `gymnasium.Space`. A `Dict` or `Tuple`.
        units: int or sequence of ints. Width of the output, or of streams
            side by side in it, as in `mlp`.
        hidden: Sequence of ints. Widths of the hidden layers. Defaults to
            `(64, 64)`.
        activation: str. Activation of the hidden layers. Defaults to `"tanh"`.
        output_gain: float. Gain of the last layer's weights. Defaults to
            `1.0`.
        normalize_observations: bool. Whether an `ObservationNormalization`
            layer comes before each array that is no picture. Defaults to
            `False`.
        normalization: str. `"none"`, `"layer"`, `"batch"` or `"spectral"`; see
            `mlp`. Defaults to `"none"`.
        initialization: str. `"orthogonal"` or `"fan_in"`, see
            `keras_rl2.networks.initialization`. Defaults to `"orthogonal"`.
        seed: int or None. Seed of the initial weights. Defaults to `None`.
        name: str. Name of the model. Defaults to `"joined_network"`.

    Returns:
        A `keras.Model` from a list of `[B, ...]`, its inputs named after the
        paths of the arrays, to `[B, units]`, or to the sum of all units.

    Example:

    >>> space = gymnasium.spaces.Dict({
    ...     "camera": gymnasium.spaces.Box(0, 255, (64, 64, 3), "uint8"),
    ...     "gear": gymnasium.spaces.Discrete(5)})
    >>> network = joined_network(space, 2, seed=0)
    >>> [tensor.name for tensor in network.inputs], network.output_shape
    (['camera', 'gear'], (None, 2))
    """
    check_arguments(
        units=units,
        hidden=hidden,
        activation=activation,
        output_gain=output_gain,
        normalize_observations=normalize_observations,
        normalization=normalization,
        name=name,
    )
    start = Initialization(initialization, seed)
    inputs, x = joined_features(
        observation_space, start, normalize_observations
    )
    layers = [
        (width, activation, f"hidden_{index}")
        for index, width in enumerate(hidden)
    ]
    outputs = fully_connected(
        x, layers, units, output_gain, start, normalization
    )
    return keras.Model(inputs, outputs, name=name)


def joined_features(
    observation_space: gymnasium.Space[Any],
    start: Initialization,
    normalize_observations: bool = False,
) -> tuple[list[keras.KerasTensor], Tensor]:
    """Makes inputs for all arrays, and concatenates their features.

    Args:
        observation_space: `gymnasium.Space`. A `Dict` or `Tuple`.
        start: `Initialization`. Makes the initial weights.
        normalize_observations: bool. See `joined_network`. Defaults to
            `False`.

    Returns:
        The inputs, and `[B, F]`.
    """
    inputs: list[keras.KerasTensor] = []
    features: list[Tensor] = []
    for path, leaf in named_leaves(space_tree(observation_space)):
        if path == ACTION_MASK:
            continue
        picture = is_image(leaf)
        dtype = pixels(leaf)["dtype"] if picture else "float32"
        given = keras.Input(
            network_shape(leaf), dtype=dtype, name=input_name(path)
        )
        inputs.append(given)
        x: Tensor = given
        # TensorFlow knows no other letters in the names of layers.
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", path)
        if picture:
            scale = pixels(leaf)["scale"]
            x = picture_features(x, start, scale, prefix=f"{name}_")
            x = dense(x, _PICTURE_UNITS, start, f"{name}_features", "relu")
        elif normalize_observations:
            x = ObservationNormalization(
                key=path, name=f"{name}_normalization"
            )(x)
        elif leaf.dtype == np.uint8:
            x = keras.layers.Rescaling(1 / 255, name=f"{name}_rescaling")(x)
        if len(x.shape) != 2:
            x = keras.layers.Flatten(
                data_format=DATA_FORMAT, name=f"{name}_flatten"
            )(x)
        features.append(x)
    if len(features) == 1:
        return inputs, features[0]
    joined: Tensor = keras.layers.Concatenate(name="joined")(features)
    return inputs, joined
