"""What all builders of networks do: dense layers that start as asked."""

from collections.abc import Sequence

import keras

from keras_rl2.initialization import Initialization
from keras_rl2.shapes import Tensor


def fully_connected(
    x: Tensor,
    hidden: Sequence[tuple[int, str, str]],
    units: int | Sequence[int],
    output_gain: float,
    start: Initialization,
) -> Tensor:
    """Ends a network: hidden layers, then the output or several streams.

    Args:
        x: `[B, F]`. What goes in.
        hidden: Sequence of widths, activations and names of hidden layers.
        units: int or Sequence of ints. Width of the output, or of streams
            side by side in it, each with the last hidden layer for itself.
        output_gain: float. Gain of the last layer's weights.
        start: `Initialization`. How weights begin.

    Returns:
        `[B, units]`, or the sum of all units.
    """

    def run(
        x: Tensor, layers: Sequence[tuple[int, str, str]], end: str
    ) -> Tensor:
        for width, activation, name in layers:
            x = dense(x, width, start, name + end, activation)
        return x

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


def dense(
    x: Tensor,
    units: int,
    start: Initialization,
    name: str,
    activation: str | None = None,
    gain: float | None = None,
) -> Tensor:
    """Applies a new dense layer.

    Args:
        x: `[B, F]`. What goes in.
        units: int. Its width.
        start: `Initialization`. How its weights begin.
        name: str. Of the layer.
        activation: str or None. Defaults to `None`.
        gain: float or None. As of `Initialization.kernel`. Defaults to
            `None`.

    Returns:
        `[B, units]`.
    """
    layer = keras.layers.Dense(
        units,
        activation=activation,
        kernel_initializer=start.kernel(gain),
        bias_initializer=start.bias(x.shape[-1]),
        name=name,
    )
    output: Tensor = layer(x)
    return output
