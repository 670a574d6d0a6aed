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
from keras_rl2.networks.building import with_seeds
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
    made = _rebuilt(network, name) or NetworkCopy(network, name)
    made.set_weights(network.get_weights())
    made.trainable = False
    return made


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

    def reseeded(seed: Any) -> Any:
        if not isinstance(seed, int):
            return seed
        return int(np.random.SeedSequence([seed, index]).generate_state(1)[0])

    name = f"{network.name}_{index}"
    made = _rebuilt(network, name, reseeded)
    if made is None:
        made = NetworkCopy(network, name)
        generator = np.random.default_rng([index, len(network.weights)])
        made.set_weights(
            [_reordered(weight, generator) for weight in network.get_weights()]
        )
    for weight, own in zip(network.weights, made.weights, strict=True):
        if not weight.trainable:
            own.assign(weight.value)
    return made


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
        # Inside a function, since Keras would track an attribute: its weights
        # are to be trained and saved once, where they belong.
        self._original: Callable[[], keras.Model] = lambda: network
        self._number_of_weights = len(network.weights)
        self._copies = [self._copy(each) for each in _variables(network)]
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
        theirs, ours = _variables(network), list(self._copies)
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


def _variables(network: keras.Model) -> list[keras.Variable]:
    """Returns the weights of a network, then the rest, as dropout's seeds."""
    weights = network.weights
    known = {id(weight) for weight in weights}
    others = network.non_trainable_variables
    return [*weights, *(each for each in others if id(each) not in known)]


def _rebuilt(
    network: keras.Model,
    name: str,
    seed_of: Callable[[Any], Any] = lambda seed: seed,
) -> keras.Model | None:
    """Makes a network from its config; None where that is not reliable."""
    if not is_wholly_described(network):
        return None
    config = {**with_seeds(network.get_config(), seed_of), "name": name}
    try:
        # Keras' checkpoints tell variables apart by their paths.
        with keras.name_scope(name):
            made = type(network).from_config(config)
            if network.built and not made.built:
                made.build_from_config(network.get_build_config())
    except Exception:
        # For example, a custom activation or initializer that is not
        # registered.
        return None
    shapes = [tuple(each.shape) for each in network.weights]
    if [tuple(each.shape) for each in made.weights] != shapes:
        return None
    return made


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
