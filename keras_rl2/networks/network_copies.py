"""Copies of networks: target networks, and twins with their own weights.

The built model is copied, regardless of its constructor's arguments, so that
a custom network needs no `get_config` to have a target.
"""

from collections.abc import Callable
from typing import Any
from typing import cast

import keras
import numpy as np

from keras_rl2.basics.shapes import Tensor
from keras_rl2.spaces.trees import Tree


def copy_of(network: keras.Model, name: str) -> keras.Model:
    """Makes a copy of a built network, with the same weights.

    Args:
        network: `keras.Model`. Must be built.
        name: str. Name of the copy.

    Returns:
        `keras.Model`, not trainable.

    Example:

    >>> from keras_rl2.networks import mlp
    >>> one = mlp((3,), 2, seed=0)
    >>> other = copy_of(one, "target")
    >>> bool((one.get_weights()[0] == other.get_weights()[0]).all())
    True
    """
    made = _from_config(network, {**_config(network), "name": name})
    if made is None:
        made = NetworkCopy(network, name)
    made.set_weights(network.get_weights())
    made.trainable = False
    return made


def sibling(network: keras.Model, index: int = 1) -> keras.Model:
    """Makes a network of the same architecture with its own weights.

    Args:
        network: `keras.Model`. Must be built, unless it consists of Keras' own
            layers.
        index: int. Seeds that the network fixes are changed by it, so that
            each sibling starts from other weights. Defaults to `1`.

    Returns:
        `keras.Model` named `<name>_<index>`. If the initializers of the
        network are unknown, the weights are those of the network with the
        rows and columns of each matrix permuted: as likely a start for any
        distribution of the initial weights.

    Raises:
        ValueError: If the network is a custom one and not built yet.

    Example:

    >>> from keras_rl2.networks import mlp
    >>> one = mlp((3,), 2, seed=0)
    >>> other = sibling(one)
    >>> bool((one.get_weights()[0] == other.get_weights()[0]).any())
    False
    """
    name = f"{network.name}_{index}"
    config = _reseeded(_config(network), index)
    made = _from_config(network, {**config, "name": name})
    if made is not None:
        return made
    made = NetworkCopy(network, name)
    generator = np.random.default_rng([index, len(network.weights)])
    made.set_weights(
        [_reordered(weight, generator) for weight in network.get_weights()]
    )
    return made


class NetworkCopy(keras.Model):
    """A network that is run with other weights than its own.

    It calls the network's own code, with the weights of the copy in place of
    the network's.

    Args:
        network: `keras.Model`. Must be built; only called, never changed.
        name: str. Name of the copy.

    Raises:
        ValueError: If the network is not built.
    """

    def __init__(self, network: keras.Model, name: str) -> None:
        super().__init__(name=name, autocast=False)
        if not network.built:
            raise ValueError(
                "Expected a built network to copy: call it once on "
                "observations, or give the agent its spaces. "
                f"Received: {network.name!r}, which is not built"
            )
        # Inside a function, since Keras would track an attribute: its weights
        # are to be trained and saved once, where they belong.
        self._original: Callable[[], keras.Model] = lambda: network
        known = {id(weight) for weight in network.weights}
        others = [
            variable
            for variable in network.non_trainable_variables
            if id(variable) not in known
        ]
        self._copies = [self._copy(each) for each in network.weights]
        # E.g. seeds of dropout.
        self._states = [self._copy(each) for each in others]
        self.built = True

    def _copy(self, variable: keras.Variable) -> keras.Variable:
        """Makes a variable like another one, with its value."""
        made = self.add_weight(
            shape=variable.shape,
            dtype=variable.dtype,
            initializer="zeros",
            trainable=variable.trainable,
            regularizer=variable.regularizer,
            name=variable.path.replace("/", "."),
        )
        made.assign(variable.value)
        return made

    @property
    def weights(self) -> list[keras.Variable]:
        """The weights, in the order of the network's weights."""
        return list(self._copies)

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
        known = {id(weight) for weight in network.weights}
        states = [
            variable
            for variable in network.non_trainable_variables
            if id(variable) not in known
        ]
        theirs = [*network.weights, *states]
        ours = [*self._copies, *self._states]
        with keras.StatelessScope(
            state_mapping=list(zip(theirs, ours, strict=True)),
            collect_losses=True,
        ) as scope:
            outputs = network(inputs, training=training)
            # The losses of weights come from the copies' own regularizers.
            losses = network.losses[: len(scope.losses)]
            values = [
                cast(Tensor, scope.get_current_value(each)) for each in theirs
            ]
        for loss in losses:
            self.add_loss(loss)
        if training:
            for variable, value in zip(ours, values, strict=True):
                if not variable.trainable:
                    variable.assign(value)
        return outputs


def is_wholly_described(network: keras.Model) -> bool:
    """Returns whether configs describe a network completely.

    The configs of Keras' own layers are complete, and those of classes that are
    registered as serializable. The config of another custom model may lack
    arguments of its constructor without notice.

    Args:
        network: `keras.Model`.

    Returns:
        bool.

    Example:

    >>> is_wholly_described(keras.Sequential([keras.layers.Dense(1)]))
    True
    """
    kind = type(network)
    if isinstance(network, (keras.layers.Lambda, NetworkCopy)):
        return False
    if kind.__module__.partition(".")[0] not in ("keras", "keras_rl2"):
        registered = keras.saving.get_registered_name(kind) != kind.__name__
        # Keras writes down a layer's arguments by itself, not a model's.
        wholly = not isinstance(network, keras.Model) or (
            kind.get_config is not keras.Model.get_config
        )
        if not (registered and wholly):
            return False
    return all(
        is_wholly_described(layer) for layer in getattr(network, "layers", [])
    )


def _config(network: keras.Model) -> dict[str, Any]:
    """Returns the config of a network with a reliable config."""
    if not is_wholly_described(network):
        return {}
    config: dict[str, Any] = network.get_config()
    return config


def _from_config(
    network: keras.Model, config: dict[str, Any]
) -> keras.Model | None:
    """Makes a network from a config; None where that is not reliable."""
    if not is_wholly_described(network):
        return None
    try:
        # Keras' checkpoints tell variables apart by their paths.
        with keras.name_scope(config["name"]):
            made = type(network).from_config(config)
            if network.built and not made.built:
                made.build_from_config(network.get_build_config())
    except Exception:
        # E.g. a custom activation or initializer that is not registered.
        return None
    shapes = [tuple(each.shape) for each in network.weights]
    if [tuple(each.shape) for each in made.weights] != shapes:
        return None
    return made


def _reseeded(config: object, index: int) -> Any:
    """Returns a config with another number for every fixed seed."""
    if isinstance(config, (list, tuple)):
        return type(config)(_reseeded(each, index) for each in config)
    if not isinstance(config, dict):
        return config
    return {
        key: int(np.random.SeedSequence([value, index]).generate_state(1)[0])
        if key == "seed" and isinstance(value, int)
        else _reseeded(value, index)
        for key, value in config.items()
    }


def _reordered(
    weight: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Returns an array with the entries of each axis permuted."""
    if weight.ndim < 2:
        return weight
    for axis in range(weight.ndim):
        weight = np.take(
            weight, generator.permutation(weight.shape[axis]), axis
        )
    return weight
