"""Copies of networks: target networks, and twins with their own weights.

The built model is copied, regardless of its constructor's arguments, so that
a custom network needs no `get_config` to have a target.
"""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_rl2.basics import seeds
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.building import with_seeds
from keras_rl2.networks.inputs import has_memory
from keras_rl2.spaces.trees import Tree


def copy_of(network: keras.Model, name: str) -> keras.Model:
    """Makes a copy of a built network, with the same weights.

    Example:

    >>> from keras_rl2.networks import mlp
    >>> one = mlp((3,), 2, seed=0)
    >>> other = copy_of(one, "target")
    >>> bool((one.get_weights()[0] == other.get_weights()[0]).all())
    True
    """
    copy = _rebuilt(network, name, 0) or NetworkCopy(network, name)
    copy.set_weights(network.get_weights())
    copy.trainable = False
    return copy


def sibling(network: keras.Model, index: int = 1) -> keras.Model:
    """Makes a network of the same architecture with its own weights.

    Returns:
        `keras.Model` named `<name>_<index>`. Frozen weights are those of the
        network, which may be pretrained. If the initializers of the network
        are unknown, the others are its weights with the rows and columns of
        each matrix permuted: as likely a start for any distribution of the
        initial weights.

    Example:

    >>> from keras_rl2.networks import mlp
    >>> one = mlp((3,), 2, seed=0)
    >>> other = sibling(one)
    >>> bool((one.get_weights()[0] == other.get_weights()[0]).any())
    False
    """
    name = f"{network.name}_{index}"
    twin = _rebuilt(network, name, index)
    if twin is None:
        twin = NetworkCopy(network, name)
        generator = np.random.default_rng([index, len(network.weights)])
        twin.set_weights(
            [_reordered(weight, generator) for weight in network.get_weights()]
        )
    for weight, other in zip(network.weights, twin.weights, strict=True):
        if not weight.trainable:
            other.assign(weight.value)
    return twin


class NetworkCopy(keras.Model):
    """A network that is run with other weights than its own.

    It calls the network's own code, with the weights of the copy in place of
    the network's.
    """

    def __init__(self, network: keras.Model, name: str) -> None:
        super().__init__(name=name, autocast=False)
        if not network.built:
            raise ValueError(
                "Expected a built network to copy: call it once on "
                "observations, or give the agent its spaces. "
                f"Received: {network.name!r}, which is not built"
            )
        if has_memory(network):
            raise ValueError(
                "Expected a recurrent network that Keras can make again from "
                "its config, for a copy: register its classes by "
                "`keras.saving.register_keras_serializable`. "
                f"Received: {network.name!r}"
            )
        # A function, since Keras would track an attribute: the weights of the
        # network are to be trained and saved once, where they belong.
        self._original: Callable[[], keras.Model] = lambda: network
        self._number_of_weights = len(network.weights)
        self._copies = [self._copy(each) for each in _variables(network)]
        self.built = True

    def _copy(self, variable: keras.Variable) -> keras.Variable:
        """Makes a variable like another one, with its value."""
        copy = self.add_weight(
            shape=variable.shape,
            dtype=variable.dtype,
            initializer="zeros",
            trainable=variable.trainable,
            regularizer=variable.regularizer,
            name=variable.path.replace("/", "."),
        )
        copy.assign(variable.value)
        return copy

    @property
    def weights(self) -> list[keras.Variable]:
        """The weights, in the order of the network's weights."""
        return self._copies[: self._number_of_weights]

    @property
    def inputs(self) -> Any:
        """Symbolic inputs of the network, where it is functional."""
        return self._original().inputs

    @property
    def input(self) -> Any:
        """Symbolic inputs, in the form that the network was made with."""
        network = self._original()
        sequential = isinstance(network, keras.Sequential)
        return network.inputs[0] if sequential else network.input

    def call(self, inputs: Tree[Tensor], training: bool = False) -> Any:
        """Runs the network with the weights of the copy."""
        network = self._original()
        pairs = [*zip(_variables(network), self._copies, strict=True)]
        with keras.StatelessScope(pairs, collect_losses=True) as scope:
            outputs = network(inputs, training=training)
            # The losses of weights come from the copies' own regularizers.
            losses = network.losses[: len(scope.losses)]
            values = [scope.get_current_value(theirs) for theirs, _ in pairs]
        for loss in losses:
            self.add_loss(loss)
        if training:
            for copy, value in zip(self._copies, values, strict=True):
                if not copy.trainable:
                    copy.assign(value)
        return outputs


def is_wholly_described(network: keras.Model) -> bool:
    """Returns whether configs describe a network completely.

    The configs of Keras' own layers are complete, and those of classes that are
    registered as serializable. The config of another custom model may lack
    arguments of its constructor without notice.

    Example:

    >>> is_wholly_described(keras.Sequential([keras.layers.Dense(1)]))
    True
    """
    kind = type(network)
    if isinstance(network, (keras.layers.Lambda, NetworkCopy)):
        return False
    if kind.__module__.partition(".")[0] not in ("keras", "keras_rl2"):
        if keras.saving.get_registered_name(kind) == kind.__name__:
            return False
        # Keras writes down a layer's arguments by itself, not a model's.
        is_model = isinstance(network, keras.Model)
        if is_model and kind.get_config is keras.Model.get_config:
            return False
    return all(
        is_wholly_described(layer) for layer in getattr(network, "layers", [])
    )


def _variables(network: keras.Model) -> list[keras.Variable]:
    """Returns the weights of a network, then the rest, as dropout's seeds."""
    weights = network.weights
    known = {id(weight) for weight in weights}
    others = network.non_trainable_variables
    return [*weights, *(each for each in others if id(each) not in known)]


def _rebuilt(network: keras.Model, name: str, index: int) -> keras.Model | None:
    """Makes a network from its config; None where that is not reliable.

    Weights and dropout have other seeds.
    """

    def reseeded(seed: Any) -> Any:
        is_fixed = isinstance(seed, int)
        return seeds.several([seed, index], 1)[0] if is_fixed else seed

    if not is_wholly_described(network):
        return None
    config = {**with_seeds(network.get_config(), reseeded), "name": name}
    try:
        # Keras' checkpoints tell variables apart by their paths.
        with keras.name_scope(name):
            rebuilt = type(network).from_config(config)
            if network.built and not rebuilt.built:
                rebuilt.build_from_config(network.get_build_config())
    except Exception:
        # A custom activation or initializer may not be registered.
        return None
    shapes = [each.shape for each in network.weights]
    is_alike = shapes == [each.shape for each in rebuilt.weights]
    return rebuilt if is_alike else None


def _reordered(
    weight: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Returns an array with the entries of each axis permuted."""
    for axis in range(weight.ndim if weight.ndim > 1 else 0):
        weight = generator.permutation(weight, axis=axis)
    return weight
