"""Builders of networks: each returns a plain `keras.Model`.

Nothing in the library depends on these: an agent takes any Keras model whose
input fits the observation and whose output fits the action space.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium
import keras
import numpy as np

from keras_rl2.initialization import Initialization
from keras_rl2.layers import ObservationNormalization
from keras_rl2.shapes import Tensor


def mlp(
    input_shape: Sequence[int],
    units: int | Sequence[int],
    *,
    hidden: Sequence[int] = (64, 64),
    activation: str = "tanh",
    output_gain: float = 1.0,
    normalize_observations: bool = False,
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
        initialization: str. `"orthogonal"` or `"fan_in"`, see
            `keras_rl2.initialization`. Defaults to `"orthogonal"`.
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
    """
    start = Initialization(initialization, seed)
    inputs = keras.Input(tuple(input_shape), name="observation")
    x: Tensor = inputs
    if normalize_observations:
        x = ObservationNormalization(name="normalization")(x)
    if len(input_shape) != 1:
        x = keras.layers.Flatten(name="flatten")(x)
    layers = [
        (width, activation, f"hidden_{index}")
        for index, width in enumerate(hidden)
    ]
    outputs = _fully_connected(x, layers, units, output_gain, start)
    return keras.Model(inputs, outputs, name=name)


def nature_cnn(
    input_shape: Sequence[int],
    units: int | Sequence[int],
    *,
    output_gain: float = 1.0,
    initialization: str = "orthogonal",
    seed: int | None = None,
    name: str = "nature_cnn",
) -> keras.Model:
    """Builds the convolutional network of the Nature DQN for images.

    Pixels stay uint8 until they are inside the network, where they are scaled
    to 0..1. Images with the channels first (as `AtariVectorEnv` gives them)
    are turned, because convolutions on a CPU need the channels last. Of a
    stack of colour images, `[stack, height, width, channels]` as
    `FrameStackObservation` gives it, the images lie side by side as channels.

    Args:
        input_shape: Sequence of 3 or 4 ints. Shape of one image, at least
            36 x 36, or of a stack of them.
        units: int or sequence of ints. Width of the output, or of streams
            side by side in it, as in `mlp`.
        output_gain: float. Gain of the last layer's weights. Defaults to
            `1.0`.
        initialization: str. `"orthogonal"` or `"fan_in"`, see
            `keras_rl2.initialization`. Defaults to `"orthogonal"`.
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
    if len(input_shape) not in (3, 4) or min(_sides(input_shape)) < 36:
        raise ValueError(
            "`nature_cnn` expects an image of three axes, at least 36 x 36, or "
            f"a stack of them. Received: input_shape={tuple(input_shape)}"
        )
    start = Initialization(initialization, seed)
    inputs = keras.Input(tuple(input_shape), dtype="uint8", name="observation")
    x: Tensor = inputs
    if len(input_shape) == 4:
        # [stack, height, width, channels] -> [height, width, stack * channels]
        x = keras.layers.Permute((2, 3, 1, 4), name="stack_last")(x)
        shape = (*_sides(input_shape), -1)
        x = keras.layers.Reshape(shape, name="side_by_side")(x)
    elif _channels_first(input_shape):
        x = keras.layers.Permute((2, 3, 1), name="channels_last")(x)
    x = keras.layers.Rescaling(1.0 / 255.0, name="rescaling")(x)
    for index, (filters, size, strides) in enumerate(
        ((32, 8, 4), (64, 4, 2), (64, 3, 1))
    ):
        x = keras.layers.Conv2D(
            filters,
            size,
            strides,
            activation="relu",
            # 36 pixels leave less than 3 x 3 before the third convolution.
            padding="same" if index == 2 else "valid",
            kernel_initializer=start.kernel(),
            bias_initializer=start.bias(size * size * x.shape[-1]),
            name=f"convolution_{index}",
        )(x)
    x = keras.layers.Flatten(name="flatten")(x)
    layers = [(512, "relu", "hidden")]
    outputs = _fully_connected(x, layers, units, output_gain, start)
    return keras.Model(inputs, outputs, name=name)


def network_for(
    observation_space: gymnasium.Space[Any],
    units: int | Sequence[int],
    **kwargs: Any,
) -> keras.Model:
    """Builds the default network for an observation space.

    Args:
        observation_space: `gymnasium.Space`. Images (uint8, three axes, 36
            pixels or more) get `nature_cnn`, all else `mlp`.
        units: int or sequence of ints. Width of the output, or of its
            streams.
        **kwargs: Further arguments of the builder.

    Returns:
        A `keras.Model`.

    Example:

    >>> space = gymnasium.spaces.Discrete(7)
    >>> network_for(space, 2, seed=0).input_shape
    (None, 7)
    """
    if isinstance(observation_space, gymnasium.spaces.Discrete):
        return mlp((int(observation_space.n),), units, **kwargs)
    shape = observation_space.shape or (1,)
    if is_image(observation_space):
        image_options = {
            key: value
            for key, value in kwargs.items()
            if key in ("output_gain", "initialization", "seed", "name")
        }
        return nature_cnn(shape, units, **image_options)
    return mlp(shape, units, **kwargs)


def critic_for(
    observation_space: gymnasium.Space[Any],
    action_size: int,
    *,
    hidden: Sequence[int] = (256, 256),
    activation: str = "relu",
    normalize_observations: bool = False,
    initialization: str = "fan_in",
    seed: int | None = None,
    name: str = "critic",
) -> keras.Model:
    """Builds a network that values an action together with an observation.

    Args:
        observation_space: `gymnasium.Space`. Images go through `nature_cnn`
            first.
        action_size: int. Numbers of one action, A.
        hidden: Sequence of ints. Widths of the hidden layers. Defaults to
            `(256, 256)`.
        activation: str. Activation of the hidden layers. Defaults to
            `"relu"`.
        normalize_observations: bool. Whether an `ObservationNormalization`
            layer comes first; not for images. Defaults to `False`.
        initialization: str. `"orthogonal"` or `"fan_in"`, see
            `keras_rl2.initialization`. Defaults to `"fan_in"`.
        seed: int or None. Seed of the initial weights. Defaults to `None`.
        name: str. Name of the model. Defaults to `"critic"`.

    Returns:
        A `keras.Model` from a list of `[B, *observation_shape]` and
        `[B, action_size]` to `[B, 1]`.

    Example:

    >>> space = gymnasium.spaces.Box(-1.0, 1.0, (3,))
    >>> critic_for(space, 2, seed=0).input_shape
    [(None, 3), (None, 2)]
    """
    start = Initialization(initialization, seed)
    action = keras.Input((action_size,), name="action")
    x: Tensor
    if is_image(observation_space):
        features = nature_cnn(
            tuple(observation_space.shape or ()),
            hidden[0] if hidden else 64,
            initialization=initialization,
            seed=start.next_seed(),
            name="features",
        )
        observation = keras.Input(
            features.input_shape[1:], dtype="uint8", name="observation"
        )
        x = features(observation)
    else:
        if isinstance(observation_space, gymnasium.spaces.Discrete):
            shape: tuple[int, ...] = (int(observation_space.n),)
        else:
            shape = tuple(observation_space.shape or (1,))
        x = observation = keras.Input(shape, name="observation")
        if normalize_observations:
            x = ObservationNormalization(name="normalization")(x)
        if len(shape) != 1:
            x = keras.layers.Flatten(name="flatten")(x)
    x = keras.layers.Concatenate(name="both")([x, action])
    for index, width in enumerate(hidden):
        x = _dense(x, width, start, f"hidden_{index}", activation)
    outputs = _dense(x, 1, start, "output", gain=1.0)
    return keras.Model([observation, action], outputs, name=name)


def is_image(space: gymnasium.Space[Any]) -> bool:
    """Whether observations are images that a convolution can take.

    Args:
        space: `gymnasium.Space`. The observation space.

    Returns:
        bool.

    Example:

    >>> is_image(gymnasium.spaces.Box(0, 255, (84, 84, 4), "uint8"))
    True
    """
    shape = tuple(space.shape or ())
    if space.dtype != np.uint8 or len(shape) not in (3, 4):
        return False
    return min(_sides(shape)) >= 36


def _sides(shape: Sequence[int]) -> Sequence[int]:
    """Returns height and width of an image, or of each in a stack."""
    if len(shape) == 4:
        return shape[1:3]
    return shape[1:] if _channels_first(shape) else shape[:-1]


def _channels_first(shape: Sequence[int]) -> bool:
    """Whether the first of three axes is the smallest, so holds channels."""
    return len(shape) == 3 and shape[0] < min(shape[1:])


def _fully_connected(
    x: Tensor,
    hidden: Sequence[tuple[int, str, str]],
    units: int | Sequence[int],
    output_gain: float,
    start: Initialization,
) -> Tensor:
    """Ends a network: hidden layers, then the output or several streams."""

    def run(
        x: Tensor, layers: Sequence[tuple[int, str, str]], end: str
    ) -> Tensor:
        for width, activation, name in layers:
            x = _dense(x, width, start, name + end, activation)
        return x

    if not isinstance(units, Sequence):
        x = run(x, hidden, "")
        return _dense(x, units, start, "output", gain=output_gain)
    x = run(x, hidden[:-1], "")
    streams = []
    for index, width in enumerate(units):
        stream = run(x, hidden[-1:], f"_stream_{index}")
        name = f"output_{index}"
        output = _dense(stream, width, start, name, gain=output_gain)
        streams.append(output)
    joined: Tensor = keras.layers.Concatenate(name="output")(streams)
    return joined


def _dense(
    x: Tensor,
    units: int,
    start: Initialization,
    name: str,
    activation: str | None = None,
    gain: float | None = None,
) -> Tensor:
    """Applies a new dense layer."""
    layer = keras.layers.Dense(
        units,
        activation=activation,
        kernel_initializer=start.kernel(gain),
        bias_initializer=start.bias(x.shape[-1]),
        name=name,
    )
    output: Tensor = layer(x)
    return output
