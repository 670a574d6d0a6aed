"""The default networks of an observation space."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import keras
import numpy as np
from gymnasium.spaces import Dict
from gymnasium.spaces import Tuple

from keras_rl2.basics.arguments import present
from keras_rl2.basics.shapes import Tensor
from keras_rl2.layers import ObservationNormalization
from keras_rl2.networks.building import DATA_FORMAT
from keras_rl2.networks.building import check_arguments
from keras_rl2.networks.building import dense
from keras_rl2.networks.building import hidden_layer
from keras_rl2.networks.building import normalized_input
from keras_rl2.networks.initialization import Initialization
from keras_rl2.networks.joined import joined_features
from keras_rl2.networks.joined import joined_network
from keras_rl2.networks.mlp import mlp
from keras_rl2.networks.pictures import is_large
from keras_rl2.networks.pictures import nature_cnn
from keras_rl2.networks.pictures import pixels
from keras_rl2.networks.pictures import small_cnn
from keras_rl2.spaces.supported import ACTION
from keras_rl2.spaces.supported import check_critic_space
from keras_rl2.spaces.supported import is_image
from keras_rl2.spaces.supported import network_shape


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
        initialization: str. `"orthogonal"` or `"fan_in"`, see
            `keras_rl2.networks.initialization`. Defaults to `"orthogonal"`.
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
    if not isinstance(observation_space, Dict | Tuple):
        shape = network_shape(observation_space)
        if is_image(observation_space):
            build = nature_cnn if is_large(observation_space) else small_cnn
            return build(shape, units, **pixels(observation_space), **kwargs)
    kwargs["activation"] = activation
    kwargs["normalize_observations"] = normalize_observations
    if isinstance(observation_space, Dict | Tuple):
        return joined_network(observation_space, units, **kwargs)
    if observation_space.dtype == np.uint8 and not normalize_observations:
        kwargs["scale"] = 1.0 / 255.0
    return mlp(shape, units, **kwargs)


def critic_for(
    observation_space: gymnasium.Space[Any],
    action_size: int,
    *,
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
        hidden: Sequence of ints. Widths of the hidden layers. Defaults to
            `(256, 256)`.
        activation: str. Activation of the hidden layers. Defaults to
            `"relu"`.
        normalize_observations: bool. Whether an `ObservationNormalization`
            layer comes first; not for images. Defaults to `False`.
        normalization: str. `"none"`, `"layer"`, `"batch"` or `"spectral"`; see
            `mlp`. Defaults to `"none"`.
        initialization: str. `"orthogonal"` or `"fan_in"`, see
            `keras_rl2.networks.initialization`. Defaults to `"fan_in"`.
        seed: int or None. Seed of the initial weights. Defaults to `None`.
        name: str. Name of the model. Defaults to `"critic"`.

    Returns:
        A `keras.Model` from a list of `[B, *observation_shape]` and
        `[B, action_size]` to `[B, 1]`; of a Dict or Tuple, from a list of its
        arrays and the action, named after their paths and `"action"`.

    Raises:
        ValueError: If an array of the observation is called `"action"`.

    Example:

    >>> space = gymnasium.spaces.Box(-1.0, 1.0, (3,))
    >>> critic_for(space, 2, seed=0).input_shape
    [(None, 3), (None, 2)]
    """
    check_critic_space(observation_space)
    check_arguments(
        units=action_size,
        hidden=hidden,
        activation=activation,
        normalize_observations=normalize_observations,
        normalization=normalization,
        name=name,
    )
    start = Initialization(initialization, seed)
    action = keras.Input((action_size,), name=ACTION)
    inputs: list[keras.KerasTensor]
    x: Tensor
    if is_image(observation_space):
        features = network_for(
            observation_space,
            hidden[0] if len(hidden) else 64,
            initialization=initialization,
            seed=start.next_seed(),
            name="features",
        )
        dtype = pixels(observation_space)["dtype"]
        shape = features.input_shape[1:]
        inputs = [keras.Input(shape, dtype=dtype, name="observation")]
        x = features(inputs[0])
    else:
        inputs, x = _side_by_side(
            observation_space, start, normalize_observations
        )
    x = keras.layers.Concatenate(name="both")([x, action])
    x = normalized_input(x, normalization)
    for index, width in enumerate(hidden):
        x = hidden_layer(
            x,
            width,
            start,
            f"hidden_{index}",
            activation,
            normalization,
        )
    outputs = dense(x, 1, start, "output", gain=1.0)
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
        initialization: str. `"orthogonal"` or `"fan_in"`, see
            `keras_rl2.networks.initialization`. Defaults to `"orthogonal"`.
        seed: int or None. Seed of the initial weights. Defaults to `None`.
        name: str. Name of the model. Defaults to `"encoder"`.

    Returns:
        A `keras.Model` to `[B, F]`.

    Example:

    >>> encoder_for(gymnasium.spaces.Box(-1.0, 1.0, (3, 2))).output_shape
    (None, 6)
    """
    check_arguments(
        units=picture_features,
        normalize_observations=normalize_observations,
        name=name,
    )
    if is_image(observation_space):
        return network_for(
            observation_space,
            picture_features,
            hidden=(),
            initialization=initialization,
            seed=seed,
            name=name,
        )
    inputs, x = _side_by_side(
        observation_space,
        Initialization(initialization, seed),
        normalize_observations,
    )
    given = inputs if isinstance(observation_space, Dict | Tuple) else inputs[0]
    return keras.Model(given, x, name=name)


def _side_by_side(
    observation_space: gymnasium.Space[Any],
    start: Initialization,
    normalize_observations: bool,
) -> tuple[list[keras.KerasTensor], Tensor]:
    """Makes inputs for a space that is no picture, and joins them.

    Args:
        observation_space: `gymnasium.Space`.
        start: `Initialization`. Makes the initial weights.
        normalize_observations: bool. Whether numbers are normalised.

    Returns:
        The inputs, and `[B, F]`.
    """
    if isinstance(observation_space, Dict | Tuple):
        return joined_features(observation_space, start, normalize_observations)
    shape = network_shape(observation_space)
    observation = keras.Input(shape, name="observation")
    x: Tensor = observation
    if normalize_observations:
        x = ObservationNormalization(name="normalization")(x)
    elif observation_space.dtype == np.uint8:
        x = keras.layers.Rescaling(1 / 255, name="rescaling")(x)
    if len(shape) != 1:
        x = keras.layers.Flatten(data_format=DATA_FORMAT, name="flatten")(x)
    return [observation], x
