"""Layers that draw random numbers when they are trained, and those within."""

import math

import keras

from keras_rl2.networks import network_checks

# Random numbers of an update by which XLA takes no longer on a CPU.
_FEW = 512
# Of what layers draw with their seed; one of 0 draws nothing.
_RATES = ("rate", "dropout", "recurrent_dropout", "stddev")


def drawing_layers(
    agent: keras.Model, rows: int | None = None
) -> list[keras.layers.Layer]:
    """Returns the layers that draw random numbers when they are trained.

    Args:
        agent: `keras.Model`. Whose networks are looked at.
        rows: int or None. Of a minibatch, where layers are left out that draw
            but few numbers for all of them: an RNN with Dropout of its few
            inputs, which is the same at each step. Defaults to `None`.

    Returns:
        list of `keras.layers.Layer`, Dropout and noise say.

    Example:

    >>> from keras import layers
    >>> network = keras.Sequential(
    ...     [layers.Dropout(0.0), layers.Dropout(0.1, name="one")])
    >>> [layer.name for layer in drawing_layers(network)]
    ['one']
    """
    return [
        layer
        for layer in network_checks.all_layers(agent)
        if any(
            _draws(each) and not (rows and _numbers(each) * rows <= _FEW)
            for each in layers_within(layer)
        )
    ]


def layers_within(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Returns a layer and all that it holds: the cell of an RNN, say.

    Args:
        layer: `keras.layers.Layer`.

    Returns:
        list of `keras.layers.Layer`, each of them once, the layer first.
    """
    found: dict[int, keras.layers.Layer] = {}

    def visit(value: object) -> None:
        if isinstance(value, (list, tuple)):
            for each in value:
                visit(each)
        elif isinstance(value, keras.layers.Layer) and id(value) not in found:
            found[id(value)] = value
            for each in vars(value).values():
                visit(each)

    visit(layer)
    return list(found.values())


def _draws(layer: keras.layers.Layer) -> bool:
    """Says whether a layer itself draws random numbers."""
    seeds = (keras.random.SeedGenerator,)
    if not any(isinstance(each, seeds) for each in vars(layer).values()):
        return False
    rates = [getattr(layer, name, None) for name in _RATES]
    given = [rate for rate in rates if rate is not None]
    return any(given) or not given


def _numbers(layer: keras.layers.Layer) -> float:
    """Returns the random numbers of each row, as far as they are known."""
    cells = (
        keras.layers.LSTMCell,
        keras.layers.GRUCell,
        keras.layers.SimpleRNNCell,
    )
    if not isinstance(layer, cells) or layer.recurrent_dropout:
        return math.inf
    return float(layer.kernel.shape[0])
