"""The default networks of an observation space."""

import re
from collections.abc import Sequence
from typing import Any

import gymnasium
import keras
import numpy as np
from gymnasium.spaces import Box
from gymnasium.spaces import Dict
from gymnasium.spaces import Tuple

from keras_rl2.basics.arguments import present
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.building import Initialization
from keras_rl2.networks.building import dense
from keras_rl2.networks.building import fully_connected
from keras_rl2.networks.building import mlp
from keras_rl2.networks.building import vector_of
from keras_rl2.networks.pictures import LARGE
from keras_rl2.networks.pictures import nature_cnn
from keras_rl2.networks.pictures import picture_features
from keras_rl2.networks.pictures import pixels
from keras_rl2.networks.pictures import small_cnn
from keras_rl2.spaces.supported import ACTION
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import check_critic_space
from keras_rl2.spaces.supported import input_name
from keras_rl2.spaces.supported import is_image
from keras_rl2.spaces.supported import network_shape
from keras_rl2.spaces.supported import sides
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import named_leaves

# Number of features of each picture beside other arrays.
_PICTURE_UNITS = 256


def network_for(
    observation_space: gymnasium.Space[Any],
    units: int | Sequence[int],
    *,
    hidden: Sequence[int] | None = None,
    activation: str = "tanh",
    normalize_observations: bool = False,
    output_gain: float = 1.0,
    normalization: str = "none",
    initialization: str = "orthogonal",
    seed: int | None = None,
    name: str | None = None,
) -> keras.Model:
    """Builds the default network for an observation space.

    Args:
        observation_space: `gymnasium.Space`. Images (see `is_image`) get
            `nature_cnn` from 36 pixels on and `small_cnn` below; a Dict or
            Tuple gets `joined_network`; all else gets `mlp`.
        units: int or sequence of ints. Width of the output, or of its streams.
        hidden: Sequence of ints or None. Widths of the hidden layers; None for
            those of the builder. Defaults to `None`.
        activation: str. Activation of the hidden layers; after the
            convolutions of images it is relu. Defaults to `"tanh"`.
        normalize_observations: bool. Whether an `ObservationNormalization`
            layer comes first; not for images. Defaults to `False`.
        output_gain: float. Gain of the last layer's weights: 0.01 for a
            policy, 1 for a value. Defaults to `1.0`.
        normalization: str. Normalization of the hidden layers. `"layer"`: a
            `keras.layers.LayerNormalization` before each activation.
            `"batch"`: a `BatchNormalization` before each dense layer, the
            first and the last included. `"spectral"`: a
            `SpectralNormalization` around each hidden layer, whose weights
            have a largest singular value of 1. Defaults to `"none"`.
        initialization: str. `"orthogonal"` or `"fan_in"`, see `mlp`.
            Defaults to `"orthogonal"`.
        seed: int or None. Seed of the initial weights. Defaults to `None`.
        name: str or None. Name of the model; None for that of the builder.
            Defaults to `None`.

    Returns:
        A `keras.Model`.

    Example:

    >>> space = gymnasium.spaces.Discrete(7)
    >>> network_for(space, 2, seed=0).input_shape
    (None, 7)
    """
    kwargs: dict[str, Any] = {
        "output_gain": output_gain,
        "normalization": normalization,
        "initialization": initialization,
        "seed": seed,
        **present(hidden=hidden, name=name),
    }
    if is_image(observation_space):
        shape = network_shape(observation_space)
        build = nature_cnn if min(sides(shape)) >= LARGE else small_cnn
        return build(shape, units, **pixels(observation_space), **kwargs)
    kwargs["activation"] = activation
    kwargs["normalize_observations"] = normalize_observations
    if isinstance(observation_space, Dict | Tuple):
        return joined_network(observation_space, units, **kwargs)
    scale = _scale(observation_space, normalize_observations)
    return mlp(network_shape(observation_space), units, scale=scale, **kwargs)


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
        initialization: str. `"orthogonal"` or `"fan_in"`, see `mlp`.
            Defaults to `"orthogonal"`.
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
    start = Initialization(initialization, seed)
    inputs, x = _features(observation_space, start, normalize_observations)
    outputs = fully_connected(
        x, hidden, activation, units, start, output_gain, normalization
    )
    return keras.Model(inputs, outputs, name=name)


def critic_for(
    observation_space: gymnasium.Space[Any],
    action_size: int,
    *,
    units: int = 1,
    hidden: Sequence[int] = (256, 256),
    activation: str = "relu",
    normalize_observations: bool = False,
    normalization: str = "none",
    initialization: str = "fan_in",
    seed: int | None = None,
    name: str = "critic",
) -> keras.Model:
    """Builds a Q-network of an observation and an action.

    Args:
        observation_space: `gymnasium.Space`. Images go through convolutions
            first; a Dict or Tuple is joined as by `joined_network`.
        action_size: int. Numbers of one action, A.
        units: int. Width of the output. Defaults to `1`.
        hidden: Sequence of ints. Widths of the hidden layers. Defaults to
            `(256, 256)`.
        activation: str. Activation of the hidden layers. Defaults to
            `"relu"`.
        normalize_observations: bool. Whether an `ObservationNormalization`
            layer comes first; not for images. Defaults to `False`.
        normalization: str. `"none"`, `"layer"`, `"batch"` or `"spectral"`; see
            `mlp`. Defaults to `"none"`.
        initialization: str. `"orthogonal"` or `"fan_in"`, see `mlp`.
            Defaults to `"fan_in"`.
        seed: int or None. Seed of the initial weights. Defaults to `None`.
        name: str. Name of the model. Defaults to `"critic"`.

    Returns:
        A `keras.Model` from a list of `[B, *observation_shape]` and
        `[B, action_size]` to `[B, units]`; of a Dict or Tuple, from a list of
        its arrays and the action, named after their paths and `"action"`.

    Raises:
        ValueError: If an array of the observation is called `"action"`.

    Example:

    >>> space = gymnasium.spaces.Box(-1.0, 1.0, (3,))
    >>> critic_for(space, 2, seed=0).input_shape
    [(None, 3), (None, 2)]
    """
    check_critic_space(observation_space)
    start = Initialization(initialization, seed)
    action = keras.Input((action_size,), name=ACTION)
    if is_image(observation_space):
        features = network_for(
            observation_space,
            hidden[0] if len(hidden) else 64,
            initialization=initialization,
            seed=start.next_seed(),
            name="features",
        )
        inputs, x = features.inputs, features(features.input)
    else:
        inputs, x = _features(observation_space, start, normalize_observations)
    x = keras.layers.Concatenate(name="both")([x, action])
    outputs = fully_connected(
        x, hidden, activation, units, start, 1.0, normalization
    )
    return keras.Model([*inputs, action], outputs, name=name)


def encoder_for(
    observation_space: gymnasium.Space[Any],
    *,
    picture_features: int = 256,
    normalize_observations: bool = False,
    initialization: str = "orthogonal",
    seed: int | None = None,
    name: str = "encoder",
) -> keras.Model:
    """Builds the encoder of a recurrent network: observation to one vector.

    Args:
        observation_space: `gymnasium.Space`. Images go through convolutions;
            arrays of a Dict or Tuple are joined as by `joined_network`;
            all else stays as it is.
        picture_features: int. Number of features of an image. Defaults to
            `256`.
        normalize_observations: bool. Whether an `ObservationNormalization`
            layer comes first; not for images. Defaults to `False`.
        initialization: str. `"orthogonal"` or `"fan_in"`, see `mlp`.
            Defaults to `"orthogonal"`.
        seed: int or None. Seed of the initial weights. Defaults to `None`.
        name: str. Name of the model. Defaults to `"encoder"`.

    Returns:
        A `keras.Model` to `[B, F]`.

    Example:

    >>> encoder_for(gymnasium.spaces.Box(-1.0, 1.0, (3, 2))).output_shape
    (None, 6)
    """
    if is_image(observation_space):
        return network_for(
            observation_space,
            picture_features,
            hidden=(),
            initialization=initialization,
            seed=seed,
            name=name,
        )
    start = Initialization(initialization, seed)
    inputs, x = _features(observation_space, start, normalize_observations)
    is_tree = isinstance(observation_space, Dict | Tuple)
    return keras.Model(inputs if is_tree else inputs[0], x, name=name)


def _features(
    observation_space: gymnasium.Space[Any],
    start: Initialization,
    normalize_observations: bool,
) -> tuple[list[keras.KerasTensor], Tensor]:
    """Makes inputs for all arrays, and concatenates their features `[B, F]`.

    The space is no picture itself, but may contain some.
    """
    inputs: list[keras.KerasTensor] = []
    features: list[Tensor] = []
    for path, leaf in named_leaves(space_tree(observation_space)):
        if path == ACTION_MASK:
            continue
        picture = is_image(leaf)
        array = keras.Input(
            network_shape(leaf),
            dtype=pixels(leaf)["dtype"] if picture else "float32",
            name=input_name(path) or "observation",
        )
        inputs.append(array)
        # TensorFlow knows no other letters in the names of layers.
        prefix = re.sub(r"[^A-Za-z0-9_.-]", "_", path) + "_" * bool(path)
        if picture:
            scale = pixels(leaf)["scale"]
            x = picture_features(array, start, scale, prefix)
            name = f"{prefix}features"
            features.append(dense(x, _PICTURE_UNITS, start, name, "relu"))
        else:
            scale = _scale(leaf, normalize_observations)
            x = vector_of(array, normalize_observations, scale, path, prefix)
            features.append(x)
    if len(features) == 1:
        return inputs, features[0]
    return inputs, keras.layers.Concatenate(name="joined")(features)


def _scale(space: gymnasium.Space[Any], normalize_observations: bool) -> float:
    """Returns the factor of numbers, of which bytes are made small."""
    has_bytes = isinstance(space, Box) and space.dtype == np.uint8
    scaled = has_bytes and not normalize_observations
    return 1 / 255 if scaled else 1.0
