"""Dense layers with seeded initial weights, shared by all builders."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras

from keras_rl2.basics.arguments import check_choice
from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import check_sizes
from keras_rl2.basics.arguments import check_text
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.initialization import Initialization

#: Of each layer that has one, whatever `keras.config.image_data_format()` says.
DATA_FORMAT = "channels_last"

NORMALIZATIONS = ("none", "layer", "batch", "spectral")
"""Normalizations of hidden layers; see `keras_rl2.networks.mlp`."""


def check_arguments(
    *,
    units: int | Sequence[int] = 1,
    output_gain: float = 1.0,
    activation: str | Callable[..., Any] | None = None,
    name: str = "",
    scale: float = 1.0,
    normalize_observations: bool = False,
    normalization: str = "none",
    input_shape: Sequence[int] = (1,),
    dtype: str = "float32",
    **sizes: Sequence[int],
) -> None:
    """Raises for arguments that no network can be built from.

    Args:
        units: int or Sequence of ints. Width of the output, or of its streams.
            Defaults to `1`.
        output_gain: float. Gain of the last layer's weights. Defaults to
            `1.0`.
        activation: str or None. Activation of the hidden layers. Defaults to
            `None`.
        name: str. Name of the model. Defaults to `""`.
        scale: float. Factor of observations. Defaults to `1.0`.
        normalize_observations: bool. Defaults to `False`.
        normalization: str. Normalization of the hidden layers. Defaults to
            `"none"`.
        input_shape: Sequence of ints. Shape of one observation. Defaults to
            `(1,)`.
        dtype: str. Dtype of observations. Defaults to `"float32"`.
        **sizes: name = Sequence of ints, e.g. widths of hidden layers.

    Raises:
        ValueError: If an argument is invalid.
    """
    if isinstance(units, Sequence) and len(units):
        check_sizes(units=units)
    else:
        check_positive(units=units)
    check_sizes(input_shape=input_shape, **sizes)
    check_in_range(
        output_gain=(output_gain, 0.0, 1e12), scale=(scale, -1e12, 1e12)
    )
    check_flag(normalize_observations=normalize_observations)
    check_choice(normalization=(normalization, NORMALIZATIONS))
    check_text(name=name, dtype=dtype)
    try:
        keras.KerasTensor((1,), dtype)
    except ValueError:
        raise ValueError(
            "Expected `dtype` to be a dtype of Keras. "
            f"Received: dtype={dtype!r}"
        ) from None
    check_activation(activation)


def check_activation(activation: str | Callable[..., Any] | None) -> None:
    """Raises unless Keras knows the activation.

    Args:
        activation: str, Callable or None.

    Raises:
        ValueError: If it is none of these, or an unknown name.
    """
    try:
        keras.activations.get(activation)
    except ValueError:
        raise ValueError(
            "Expected `activation` to be the name of an activation of Keras. "
            f"Received: activation={activation!r}"
        ) from None


def fully_connected(
    x: Tensor,
    hidden: Sequence[tuple[int, str, str]],
    units: int | Sequence[int],
    output_gain: float,
    start: Initialization,
    normalization: str = "none",
) -> Tensor:
    """Applies the hidden layers of a network, then its output or streams.

    Args:
        x: `[B, F]`. The input.
        hidden: Sequence of widths, activations and names of hidden layers.
        units: int or Sequence of ints. Width of the output, or of streams
            side by side in it, each with the last hidden layer for itself.
        output_gain: float. Gain of the last layer's weights.
        start: `Initialization`. Makes the initial weights.
        normalization: str. Normalization of the hidden layers. Defaults to
            `"none"`.

    Returns:
        `[B, units]`, or the sum of all units.
    """

    def run(
        x: Tensor, layers: Sequence[tuple[int, str, str]], end: str
    ) -> Tensor:
        for width, activation, name in layers:
            x = hidden_layer(
                x, width, start, name + end, activation, normalization
            )
        return x

    x = normalized_input(x, normalization)
    if not isinstance(units, Sequence):
        x = run(x, hidden, "")
        return dense(x, units, start, "output", gain=output_gain)
    x = run(x, hidden[:-1], "")
    streams = []
    for index, width in enumerate(units):
        stream = run(x, hidden[-1:], f"_stream_{index}")
        name = f"output_{index}"
        output = dense(stream, width, start, name, gain=output_gain)
        streams.append(output)
    joined: Tensor = keras.layers.Concatenate(name="output")(streams)
    return joined


def hidden_layer(
    x: Tensor,
    units: int,
    start: Initialization,
    name: str,
    activation: str,
    normalization: str,
) -> Tensor:
    """Applies a new hidden layer, with optional normalization.

    Args:
        x: `[B, F]`. The input.
        units: int. Width of the layer.
        start: `Initialization`. Makes its initial weights.
        name: str. Name of the layer.
        activation: str.
        normalization: str. See `keras_rl2.networks.mlp`.

    Returns:
        `[B, units]`.
    """
    if normalization == "layer":
        x = dense(x, units, start, name)
        x = keras.layers.LayerNormalization(name=f"{name}_normalization")(x)
        activated: Tensor = keras.layers.Activation(
            activation, name=f"{name}_activation"
        )(x)
        return activated
    spectral = normalization == "spectral"
    x = dense(x, units, start, name, activation, spectral=spectral)
    if normalization == "batch":
        # The input of the next layer, which may be the output.
        x = keras.layers.BatchNormalization(name=f"{name}_normalization")(x)
    return x


def normalized_input(x: Tensor, normalization: str) -> Tensor:
    """Normalises the input of the first dense layer, where that is asked for.

    Args:
        x: `[B, F]`.
        normalization: str. See `keras_rl2.networks.mlp`.

    Returns:
        `[B, F]`.
    """
    if normalization == "batch":
        x = keras.layers.BatchNormalization(name="input_normalization")(x)
    return x


def dense(
    x: Tensor,
    units: int,
    start: Initialization,
    name: str,
    activation: str | None = None,
    gain: float | None = None,
    spectral: bool = False,
) -> Tensor:
    """Applies a new dense layer.

    Args:
        x: `[B, F]`. The input.
        units: int. Width of the layer.
        start: `Initialization`. Makes its initial weights.
        name: str. Name of the layer.
        activation: str or None. Defaults to `None`.
        gain: float or None. See `Initialization.kernel`. Defaults to
            `None`.
        spectral: bool. Whether its weights are divided by their largest
            singular value. Defaults to `False`.

    Returns:
        `[B, units]`.
    """
    layer = keras.layers.Dense(
        # Keras does not take integers of NumPy.
        int(units),
        activation=activation,
        kernel_initializer=start.kernel(gain),
        bias_initializer=start.bias(x.shape[-1]),
        name=f"{name}_dense" if spectral else name,
    )
    if not spectral:
        output: Tensor = layer(x)
        return output
    normalized = keras.layers.SpectralNormalization(layer, name=name)
    output = normalized(x)
    # Its own start is drawn without a seed; any vector will do.
    normalized.vector_u.assign(keras.ops.full_like(normalized.vector_u, 0.02))
    return output
