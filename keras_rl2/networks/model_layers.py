"""The layers of a model: all of them, those within others, random ones."""

from collections.abc import Callable
from typing import Any

import keras

from keras_rl2.networks.inputs import form_of_inputs

# Attributes with the rate of the noise; a layer whose rate is 0 draws none.
_RATES = ("rate", "dropout", "recurrent_dropout", "stddev")


def all_layers(agent: keras.Model) -> list[keras.layers.Layer]:
    """Returns all layers of an agent's networks, each once."""
    return _reached(agent.layers, lambda layer: getattr(layer, "layers", ()))


def layers_within(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Returns a layer and its nested layers, such as the cell of an RNN."""
    return _reached([layer], lambda layer: vars(layer).values())


def _reached(
    start: object, parts: Callable[[keras.layers.Layer], Any]
) -> list[keras.layers.Layer]:
    """Returns the layers in a sequence, and those among the parts of each."""
    found: dict[int, keras.layers.Layer] = {}
    left = [start]
    while left:
        value = left.pop()
        if isinstance(value, (list, tuple)):
            left.extend(reversed(value))
        elif isinstance(value, keras.layers.Layer) and id(value) not in found:
            found[id(value)] = value
            left.append([*parts(value)])
    return [*found.values()]


def features(network: keras.Model) -> keras.Model:
    """Returns a network without its last layer, with the same weights.

    Args:
        network: `keras.Model`. Functional or Sequential, whose last layer, the
            head, has one input.

    Returns:
        `keras.Model` from the inputs of the network to the input of the head.

    Raises:
        ValueError: If the network is of another kind, or dueling.

    Example:

    >>> from keras_rl2.networks import mlp
    >>> features(mlp((3,), 2, hidden=(16, 8))).output_shape
    (None, 8)
    """
    form = form_of_inputs(network)
    outputs = form is not None and network.layers[-1].input
    if not isinstance(outputs, keras.KerasTensor):
        raise ValueError(
            "Expected a functional network or a Sequential, whose last layer "
            f"has one input. Received: {network.name!r}"
        )
    return keras.Model(form, outputs, name=f"{network.name}_features")


def drawing_layers(agent: keras.Model) -> list[keras.layers.Layer]:
    """Returns the layers that draw random numbers when they are trained.

    Example:

    >>> from keras import layers
    >>> network = keras.Sequential(
    ...     [layers.Dropout(0.0), layers.Dropout(0.1, name="one")])
    >>> [layer.name for layer in drawing_layers(network)]
    ['one']
    """
    return [*filter(_draws, layers_within(agent))]


def mode_layers(model: keras.Model) -> list[keras.layers.Layer]:
    """Returns the layers whose outputs depend on `training`."""
    kinds = keras.layers.BatchNormalization, keras.layers.SpectralNormalization
    within = layers_within(model)
    found = [e for e in within if isinstance(e, kinds) and e.trainable]
    return found + drawing_layers(model)


def counting_layers(model: keras.Model) -> list[keras.layers.Layer]:
    """Returns trained layers whose statistics count each row of a batch."""
    kind = keras.layers.BatchNormalization
    return [each for each in mode_layers(model) if isinstance(each, kind)]


def _draws(layer: keras.layers.Layer) -> bool:
    """Returns whether a layer itself draws random numbers."""
    seeds = keras.random.SeedGenerator
    if not any(isinstance(each, seeds) for each in vars(layer).values()):
        return False
    rates = [getattr(layer, name) for name in _RATES if hasattr(layer, name)]
    return any(rates) or not rates
