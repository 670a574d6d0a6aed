"""Fully connected networks, and the seeded layers of all builders."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any
from typing import NamedTuple

import keras

from keras_rl2.basics import arguments
from keras_rl2.basics import seeds
from keras_rl2.basics.shapes import Tensor
from keras_rl2.layers import MonteCarloDropout
from keras_rl2.layers import NoisyDense
from keras_rl2.layers import ObservationNormalization

#: Data format of all layers, whatever `keras.config.image_data_format()` says.
DATA_FORMAT = "channels_last"

INITIALIZATIONS = ("orthogonal", "fan_in")
"""Initial weights; see `Initialization`."""

NORMALIZATIONS = ("none", "layer", "batch", "spectral")
"""Normalizations of hidden layers; see `keras_rl2.networks.mlp`."""


class Form(NamedTuple):
    """The form of fully connected layers, beside the arguments of builders.

    Attributes:
        simba: bool. Whether hidden layers are the residual blocks of SimBa.
        noisy: bool. Whether `NoisyDense` layers replace `Dense` ones.
        dropout: float. Rate of `MonteCarloDropout` before the layer
            normalization of hidden layers.
    """

    simba: bool = False
    noisy: bool = False
    dropout: float = 0.0


_PLAIN = Form()
#: Set by `for_env` while it makes a network.
FORM: ContextVar[Form] = ContextVar("form", default=_PLAIN)


class Initialization:
    """Makes initializers, each with its own seed.

    `"orthogonal"` is the usual choice for PPO and similar algorithms: hidden
    layers keep the norm of their input, biases are 0. `"fan_in"`, uniform
    within ±1/√fan_in, biases too, shrinks it layer by layer, so that values
    start near 0 and their first gradients are small: without that, learning
    values by bootstrapping at published step sizes diverges easily.

    Example:

    >>> Initialization("fan_in", seed=0).kernel().scale
    0.3333333333333333

    Reference:
        - [Andrychowicz et al., 2021](https://arxiv.org/abs/2006.05990), for
          orthogonal weights.
        - [Lillicrap et al., 2015](https://arxiv.org/abs/1509.02971), section
          7, for uniform ones.
    """

    def __init__(self, kind: str, seed: int | None) -> None:
        arguments.check_choice(initialization=(kind, INITIALIZATIONS))
        arguments.check_seed(seed)
        self.kind = kind
        # Each layer has its own, so that no two layers start alike.
        self._seeds = iter(seeds.several(seed, 64))

    def next_seed(self) -> int:
        """Returns a new seed each time."""
        return next(self._seeds)

    def kernel(self, gain: float | None = None) -> Any:
        """Returns the initializer of a layer's weights."""
        if self.kind == "orthogonal":
            gain = 2.0**0.5 if gain is None else gain
            return keras.initializers.Orthogonal(gain, self.next_seed())
        gain = 1.0 if gain is None else gain
        return keras.initializers.VarianceScaling(
            gain**2 / 3.0, "fan_in", "uniform", self.next_seed()
        )

    def bias(self, fan_in: int) -> Any:
        """Returns the initializer of biases, given the number of inputs."""
        if self.kind == "orthogonal":
            return "zeros"
        bound = fan_in**-0.5
        return keras.initializers.RandomUniform(-bound, bound, self.next_seed())


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
        scale: float. Factor of observations, such as 1/255 for bytes. Defaults
            to `1.0`.
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
    x = vector_of(inputs, normalize_observations, scale)
    outputs = fully_connected(
        x, hidden, activation, units, start, output_gain, normalization
    )
    return keras.Model(inputs, outputs, name=name)


def with_seeds(config: object, seed_of: Callable[[Any], Any]) -> Any:
    """Returns the config of a network or layer with other seeds."""
    if isinstance(config, Mapping):
        return {
            key: seed_of(value)
            if key == "seed" and not isinstance(value, Mapping)
            else with_seeds(value, seed_of)
            for key, value in config.items()
        }
    if isinstance(config, list | tuple):
        return type(config)(with_seeds(each, seed_of) for each in config)
    return config


def vector_of(
    x: Tensor,
    normalize_observations: bool,
    scale: float = 1.0,
    key: str = "",
    prefix: str = "",
) -> Tensor:
    """Makes one vector of an array that is no picture.

    Args:
        x: `[B, ...]`. The array.
        normalize_observations: bool. Whether its statistics normalise it.
        scale: float. Factor of its numbers. Defaults to `1.0`.
        key: str. Path of the array in the observation. Defaults to `""`.
        prefix: str. Prefix of the names of layers. Defaults to `""`.

    Returns:
        `[B, F]`.
    """
    if normalize_observations:
        name = f"{prefix}normalization"
        x = ObservationNormalization(key=key, name=name)(x)
    if scale != 1.0:
        x = keras.layers.Rescaling(scale, name=f"{prefix}rescaling")(x)
    if len(x.shape) != 2:
        name = f"{prefix}flatten"
        x = keras.layers.Flatten(data_format=DATA_FORMAT, name=name)(x)
    return x


def fully_connected(
    x: Tensor,
    hidden: Sequence[int],
    activation: str,
    units: int | Sequence[int],
    start: Initialization,
    output_gain: float = 1.0,
    normalization: str = "none",
    first: str = "hidden_0",
) -> Tensor:
    """Applies the hidden layers of a network, then its output or streams.

    Args:
        x: `[B, F]`. The input.
        hidden: Sequence of ints. Widths of the hidden layers.
        activation: str. Activation of the hidden layers.
        units: int or Sequence of ints. Width of the output, or of streams
            side by side in it, each with the last hidden layer for itself.
        start: `Initialization`. Makes the initial weights.
        output_gain: float. Gain of the last layer's weights. Defaults to
            `1.0`.
        normalization: str. Normalization of the hidden layers. Defaults to
            `"none"`.
        first: str. Name of the first hidden layer. Defaults to `"hidden_0"`.

    Returns:
        `[B, units]`, or the sum of all units.
    """
    names = [first, *(f"hidden_{index}" for index in range(1, len(hidden)))]
    layers = [*zip(hidden, names, strict=False)]

    def run(x: Tensor, layers: list[tuple[int, str]], end: str = "") -> Tensor:
        for width, name in layers:
            name += end
            x = hidden_layer(x, width, start, name, activation, normalization)
        return x

    def output(x: Tensor, width: int, name: str) -> Tensor:
        if FORM.get().simba:
            x = _simba_normalization(f"{name}_normalization")(x)
        return dense(x, width, start, name, gain=output_gain)

    x = normalized_input(x, normalization)
    if FORM.get().simba:
        x = dense(x, hidden[0], start, "embedding", gain=1.0)
    if not isinstance(units, Sequence):
        return output(run(x, layers), units, "output")
    x = run(x, layers[:-1])
    streams = []
    for index, width in enumerate(units):
        stream = run(x, layers[-1:], f"_stream_{index}")
        streams.append(output(stream, width, f"output_{index}"))
    return keras.layers.Concatenate(name="output")(streams)


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
    form = FORM.get()
    if form.simba:
        return _residual_block(x, units, start, name, activation)
    if normalization == "layer" or form.dropout:
        x = dense(x, units, start, name)
        if form.dropout:
            x = MonteCarloDropout(
                form.dropout, seed=start.next_seed(), name=f"{name}_dropout"
            )(x)
        x = keras.layers.LayerNormalization(name=f"{name}_normalization")(x)
        name = f"{name}_activation"
        return keras.layers.Activation(activation, name=name)(x)
    spectral = normalization == "spectral"
    x = dense(x, units, start, name, activation, spectral=spectral)
    if normalization == "batch":
        # This is the input of the next layer, which may be the output.
        x = keras.layers.BatchNormalization(name=f"{name}_normalization")(x)
    return x


def _residual_block(
    x: Tensor, units: int, start: Initialization, name: str, activation: str
) -> Tensor:
    """Adds to its input `[B, units]` two layers of it, the first of 4 units."""
    y = _simba_normalization(f"{name}_normalization")(x)
    first, last = ("_wide", 4 * units, activation), ("", units, None)
    for end, width, each in (first, last):
        kernel = keras.initializers.HeNormal(start.next_seed())
        y = dense(y, width, start, name + end, each, kernel=kernel)
    return keras.layers.Add(name=f"{name}_sum")([x, y])


def _simba_normalization(name: str) -> keras.layers.Layer:
    """Makes a layer normalization of SimBa."""
    return keras.layers.LayerNormalization(epsilon=1e-6, name=name)


def normalized_input(x: Tensor, normalization: str) -> Tensor:
    """Normalises the input of the first dense layer, where that is asked for.

    Args:
        x: `[B, F]`.
        normalization: str. See `keras_rl2.networks.mlp`.

    Returns:
        `[B, F]`.
    """
    arguments.check_choice(normalization=(normalization, NORMALIZATIONS))
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
    kernel: keras.initializers.Initializer | None = None,
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
        kernel: `keras.initializers.Initializer` or None. Initial weights; None
            for those of `start`. Defaults to `None`.

    Returns:
        `[B, units]`.
    """
    kind = NoisyDense if FORM.get().noisy else keras.layers.Dense
    layer = kind(
        # Keras does not take integers of NumPy.
        int(units),
        activation=activation,
        kernel_initializer=kernel or start.kernel(gain),
        bias_initializer=start.bias(x.shape[-1]),
        name=f"{name}_dense" if spectral else name,
    )
    if not spectral:
        return layer(x)
    normalized = keras.layers.SpectralNormalization(layer, name=name)
    output = normalized(x)
    # Keras draws this vector without a seed; any vector will do.
    normalized.vector_u.assign(keras.ops.full_like(normalized.vector_u, 0.02))
    return output
