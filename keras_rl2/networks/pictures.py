"""Convolutional networks, for pictures large and small."""

import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import keras
import numpy as np

from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.building import DATA_FORMAT
from keras_rl2.networks.building import Initialization
from keras_rl2.networks.building import fully_connected
from keras_rl2.networks.building import vector_of
from keras_rl2.spaces.supported import IMAGE_AXES
from keras_rl2.spaces.supported import SMALLEST_IMAGE
from keras_rl2.spaces.supported import bounds
from keras_rl2.spaces.supported import channels_first
from keras_rl2.spaces.supported import network_dtype
from keras_rl2.spaces.supported import observation_dtype
from keras_rl2.spaces.supported import sides

#: Smallest side of a picture, in pixels, for `nature_cnn`.
LARGE = 36

# Filters, size and strides of each convolution.
_NATURE = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
# Sides, in pixels, up to which no stride halves a picture.
_GRID = 7


def nature_cnn(
    input_shape: Sequence[int],
    units: int | Sequence[int],
    *,
    hidden: Sequence[int] = (512,),
    output_gain: float = 1.0,
    normalization: str = "none",
    initialization: str = "orthogonal",
    dtype: str = "uint8",
    scale: float = 1.0 / 255.0,
    seed: int | None = None,
    name: str = "nature_cnn",
) -> keras.Model:
    """Builds the convolutional network of the Nature DQN for images.

    Pixels stay uint8 until they are inside the network, where they are scaled
    to 0..1. A grey picture of two axes gets a third. Images with the channels
    first (for example from `AtariVectorEnv`) are transposed, because
    convolutions on a CPU need the channels last. The images of a stack of
    colour images, `[stack, height, width, channels]`, for example from
    `FrameStackObservation`, are concatenated along the channels.

    Args:
        input_shape: Sequence of 2 to 4 ints. Shape of one image, at least
            36 x 36, or of a stack of them.
        units: int or sequence of ints. Width of the output, or of streams
            side by side in it, as in `mlp`.
        hidden: Sequence of ints. Widths of the layers after the convolutions.
            Defaults to `(512,)`.
        output_gain: float. Gain of the last layer's weights. Defaults to
            `1.0`.
        normalization: str. `"none"`, `"layer"`, `"batch"` or `"spectral"`, see
            `mlp`; convolutions are not normalised. Defaults to `"none"`.
        initialization: str. `"orthogonal"` or `"fan_in"`, see `mlp`.
            Defaults to `"orthogonal"`.
        dtype: str. Dtype of the input. Defaults to `"uint8"`.
        scale: float. Factor of pixels. Defaults to `1.0 / 255.0`.
        seed: int or None. Seed of the initial weights. Defaults to `None`.
        name: str. Name of the model. Defaults to `"nature_cnn"`.

    Returns:
        A `keras.Model` from `[B, height, width, channels]` to `[B, units]`,
        or to the sum of all units.

    Raises:
        ValueError: If the shape is not an image of at least 36 x 36.

    Example:

    >>> nature_cnn((84, 84, 4), 6, seed=0).output_shape
    (None, 6)

    Reference:
        - [Mnih et al., 2015](https://www.nature.com/articles/nature14236).
    """
    inputs = _picture("nature_cnn", LARGE, input_shape, dtype)
    start = Initialization(initialization, seed)
    x = picture_features(inputs, start, scale)
    outputs = fully_connected(
        x, hidden, "relu", units, start, output_gain, normalization, "hidden"
    )
    return keras.Model(inputs, outputs, name=name)


def small_cnn(
    input_shape: Sequence[int],
    units: int | Sequence[int],
    *,
    hidden: Sequence[int] = (128,),
    activation: str = "relu",
    output_gain: float = 1.0,
    normalization: str = "none",
    initialization: str = "orthogonal",
    dtype: str = "uint8",
    scale: float = 1.0 / 255.0,
    seed: int | None = None,
    name: str = "small_cnn",
) -> keras.Model:
    """Builds a convolutional network for small pictures, for example of grids.

    The cells of a grid hold codes as often as brightnesses, so that nothing is
    known of the scale of its numbers: the first convolution is followed by a
    `keras.layers.LayerNormalization`.

    Pictures of up to 7 pixels keep their size in two convolutions. Larger ones
    are halved by strides until 4 to 7 pixels are left, so that the layer after
    them, which holds most weights, does not grow with the picture.

    Args:
        input_shape: Sequence of 2 to 4 ints. Shape of one picture, at least
            5 x 5, or of a stack of them.
        units: int or sequence of ints. Width of the output, or of streams
            side by side in it, as in `mlp`.
        hidden: Sequence of ints. Widths of the hidden layers after the
            convolutions. Defaults to `(128,)`.
        activation: str. Activation of the hidden layers. Defaults to `"relu"`.
        output_gain: float. Gain of the last layer's weights. Defaults to
            `1.0`.
        normalization: str. `"none"`, `"layer"`, `"batch"` or `"spectral"`, see
            `mlp`; convolutions are not normalised. Defaults to `"none"`.
        initialization: str. `"orthogonal"` or `"fan_in"`, see `mlp`.
            Defaults to `"orthogonal"`.
        dtype: str. Dtype of the input. Defaults to `"uint8"`.
        scale: float. Factor of pixels. Defaults to `1.0 / 255.0`.
        seed: int or None. Seed of the initial weights. Defaults to `None`.
        name: str. Name of the model. Defaults to `"small_cnn"`.

    Returns:
        A `keras.Model` from `[B, height, width, channels]` to `[B, units]`,
        or to the sum of all units.

    Raises:
        ValueError: If the shape is not a picture of at least 5 x 5.

    Example:

    >>> small_cnn((7, 7, 3), 6, seed=0).output_shape
    (None, 6)
    """
    inputs = _picture("small_cnn", SMALLEST_IMAGE, input_shape, dtype)
    start = Initialization(initialization, seed)
    x = picture_features(inputs, start, scale)
    outputs = fully_connected(
        x, hidden, activation, units, start, output_gain, normalization
    )
    return keras.Model(inputs, outputs, name=name)


def _picture(
    name: str, smallest: int, input_shape: Sequence[int], dtype: str
) -> keras.KerasTensor:
    """Makes the input of a builder of networks for pictures."""
    if len(input_shape) not in IMAGE_AXES or min(sides(input_shape)) < smallest:
        raise ValueError(
            f"Expected a picture for `{name}`, at least {smallest} x "
            f"{smallest}, with or without channels, or a stack of them. "
            f"Received: input_shape={tuple(input_shape)}"
        )
    return keras.Input(tuple(input_shape), dtype=dtype, name="observation")


def picture_features(
    x: Tensor, start: Initialization, scale: float, prefix: str = ""
) -> Tensor:
    """Applies the convolutions that fit the size of a picture.

    Args:
        x: `[B, height, width, channels]`, or channels first, or `[B, height,
            width]`, or `[B, stack, height, width, channels]`.
        start: `Initialization`. Makes the initial weights.
        scale: float. Factor of pixels.
        prefix: str. Prefix of the names of layers. Defaults to `""`.

    Returns:
        `[B, F]`.
    """
    large = min(sides(x.shape[1:])) >= LARGE
    x = channels_last(x, prefix)
    x = keras.layers.Rescaling(scale, name=f"{prefix}rescaling")(x)
    convolutions = _NATURE if large else _small(min(sides(x.shape[1:-1])))
    for index, (filters, size, strides) in enumerate(convolutions):
        normalized = not large and index == 0
        x = keras.layers.Conv2D(
            filters,
            size,
            strides,
            padding="valid" if large else "same",
            data_format=DATA_FORMAT,
            activation=None if normalized else "relu",
            kernel_initializer=start.kernel(),
            bias_initializer=start.bias(size * size * x.shape[-1]),
            name=f"{prefix}convolution_{index}",
        )(x)
        if normalized:
            x = keras.layers.LayerNormalization(name=f"{prefix}scale")(x)
            x = keras.layers.ReLU(name=f"{prefix}relu")(x)
    return vector_of(x, False, prefix=prefix)


def _small(side: int) -> list[tuple[int, int, int]]:
    """Returns filters, size and strides of each convolution of `small_cnn`."""
    halvings = max(math.ceil(math.log2(side / _GRID)), 0)
    strides = [1] * max(2 - halvings, 0) + [2] * halvings
    return [(16 if i == 0 else 32, 3, each) for i, each in enumerate(strides)]


def channels_last(x: Tensor, prefix: str = "") -> Tensor:
    """Brings a picture into the form of a convolution's input.

    Args:
        x: `[B, ...]`. See `picture_features`.
        prefix: str. Prefix of the names of layers. Defaults to `""`.

    Returns:
        `[B, height, width, channels]`.
    """
    shape = x.shape[1:]
    if len(shape) == 2:
        # [height, width] -> [height, width, 1]
        x = keras.layers.Reshape((*shape, 1), name=f"{prefix}channel")(x)
    elif len(shape) == 4:
        # [stack, height, width, channels] -> [height, width, stack * channels]
        x = keras.layers.Permute((2, 3, 1, 4), name=f"{prefix}stack_last")(x)
        beside = (*sides(shape), -1)
        x = keras.layers.Reshape(beside, name=f"{prefix}side_by_side")(x)
    elif channels_first(shape):
        x = keras.layers.Permute((2, 3, 1), name=f"{prefix}channels_last")(x)
    return x


def pixels(space: gymnasium.Space[Any]) -> dict[str, Any]:
    """Returns the arguments by which a network takes pixels."""
    highest = max(float(np.max(bounds(space)[1])), 1.0)
    whole = observation_dtype(space) == np.uint8
    scale = 1.0 / (255.0 if whole else highest)
    return {"dtype": network_dtype(space), "scale": scale}
