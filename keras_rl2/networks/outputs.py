"""Outputs of networks: the activation they end in, logits, single values."""

import warnings
from collections.abc import Sequence
from typing import Any
from typing import cast

import gymnasium
import keras
import tensorflow as tf
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.spaces.trees import Tree

# Operations that leave the values of an output unchanged.
_PASSED = frozenset(
    {"Cast", "Identity", "IdentityN", "Reshape", "Squeeze", "StopGradient"}
)


# Operations that scale or shift it, by a number that is no part of it.
_SCALES = frozenset({"Mul", "AddV2", "Add", "Sub", "RealDiv", "Div"})


_NUMBERS = frozenset({"Const", "Placeholder", "ReadVariableOp"})


_ACTIVATIONS = {
    "Softmax": "softmax",
    "Tanh": "tanh",
    "Sigmoid": "sigmoid",
    "Relu": "relu",
}


_FUNCTIONS = {
    keras.activations.linear: None,
    keras.activations.softmax: "softmax",
    keras.activations.tanh: "tanh",
    keras.activations.sigmoid: "sigmoid",
    keras.activations.relu: "relu",
}


# Smaller probabilities count as this one, whose logarithm is finite.
_SMALLEST_PROBABILITY = 1e-30


def ending_of(
    network: keras.Model, inputs: Tree[Tensor], output: int = 0
) -> str | None:
    """Returns the activation that a network ends in.

    The activation may be an argument of a layer, a layer or an operation in
    `call`: where the last layer does not show it, it is found in the graph of
    the network.

    Args:
        network: `keras.Model`. Called once, symbolically.
        inputs: `keras.KerasTensor` or a list of them. Its inputs.
        output: int. Which of several outputs. Defaults to `0`.

    Returns:
        `"softmax"`, `"tanh"`, `"sigmoid"`, `"relu"`, or None for any other.

    Example:

    >>> network = keras.Sequential(
    ...     [keras.layers.Dense(2), keras.layers.Softmax()])
    >>> ending_of(network, keras.KerasTensor((None, 3)))
    'softmax'
    """
    last = _last_layer(network, output)
    if isinstance(last, keras.layers.Dense):
        activation = last.activation
        if activation in _FUNCTIONS:
            return _FUNCTIONS[activation]
    operation = _last_operation(network, inputs, output)
    return _ACTIVATIONS.get(operation.type)


def ends_in_scaled_tanh(network: keras.Model, inputs: Tree[Tensor]) -> bool:
    """Returns whether a network's output is a scaled or shifted tanh.

    Args:
        network: `keras.Model`. Called once, symbolically.
        inputs: `keras.KerasTensor` or a list of them. Its inputs.

    Example:

    >>> network = keras.Sequential(
    ...     [keras.layers.Dense(1, "tanh"), keras.layers.Rescaling(2.0)])
    >>> ends_in_scaled_tanh(network, keras.KerasTensor((None, 3)))
    True
    """
    if isinstance(_last_layer(network, 0), keras.layers.Dense):
        return False
    operation, scaled = _last_operation(network, inputs, 0), False
    while operation.type in _SCALES:
        given = [each.op for each in operation.inputs]
        left = [each for each in map(_source, given) if not _is_number(each)]
        if len(left) != 1:
            return False
        operation, scaled = left[0], True
    return scaled and operation.type == "Tanh"


def _is_number(operation: tf.Operation) -> bool:
    """Returns whether an operation reads a constant or a variable."""
    return operation.type in _NUMBERS


def _source(operation: tf.Operation) -> tf.Operation:
    """Returns the operation that computes the value passed on by another."""
    while operation.type in _PASSED:
        operation = operation.inputs[0].op
    return operation


def _last_operation(
    network: keras.Model, inputs: Tree[Tensor], output: int
) -> tf.Operation:
    """Returns the operation that computes an output, found in the graph."""
    # Takes some 30 ms for a small network.
    specs = keras.tree.map_structure(_spec, inputs)

    def run(given: Tensor | Sequence[Tensor]) -> Tensor:
        outputs: Tensor | Sequence[Tensor] = network(given, training=False)
        if isinstance(outputs, (list, tuple)):
            return cast(Sequence[Tensor], outputs)[output]
        return cast(Tensor, outputs)

    graph = tf.function(run, autograph=False).get_concrete_function(specs).graph
    return _source(graph.outputs[0].op)


def _spec(tensor: Tensor) -> tf.TensorSpec:
    """Returns the spec that a function is traced with for a tensor."""
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _last_layer(network: keras.Model, output: int) -> keras.layers.Layer | None:
    """Returns the layer that computes an output, or None if unknown."""
    outputs: Sequence[Tensor] | None = getattr(network, "outputs", None)
    if not outputs:
        return None
    for layer in reversed(network.layers):
        try:
            if layer.output is outputs[output]:
                return layer
        except (AttributeError, ValueError):
            # It has several outputs, or those of another network.
            continue
    return None


def as_logits(probabilities: Tensor) -> Tensor:
    """Turns probabilities into logits of the same distribution.

    Args:
        probabilities: `[B, n]`. Output of a softmax.

    Returns:
        `[B, n]` float32.
    """
    return ops.log(
        ops.maximum(ops.cast(probabilities, "float32"), _SMALLEST_PROBABILITY)
    )


def check_policy_ending(
    actor: keras.Model,
    inputs: Tree[Tensor],
    action_space: gymnasium.Space[Any],
    squash: bool = False,
) -> bool:
    """Returns whether a policy network outputs probabilities, not logits.

    Warns if the last activation restricts the policy.

    Args:
        actor: `keras.Model`. Its first output is for the policy.
        inputs: `keras.KerasTensor`. Its inputs.
        action_space: `gymnasium.Space`. Action space of the policy.
        squash: bool. Whether actions of a Box are squashed by tanh after it.
            Defaults to `False`.

    Returns:
        bool: True for Discrete actions and a softmax.
    """
    ending = ending_of(actor, inputs)
    if isinstance(action_space, gymnasium.spaces.Discrete):
        if ending == "softmax":
            return True
        _warn(actor, ending, "the logits of actions, which are unbounded")
    elif not isinstance(action_space, gymnasium.spaces.Box):
        _warn(actor, ending, "the logits of choices, which are unbounded")
    elif squash or ending != "tanh" or not _within_one(action_space):
        _warn(actor, ending, "the means of actions, within all their bounds")
    return False


def check_action_ending(actor: keras.Model, inputs: Tree[Tensor]) -> bool:
    """Returns whether a deterministic policy outputs squashed actions.

    Warns of any other ending that bounds it.

    Args:
        actor: `keras.Model`. Its output is for a Box.
        inputs: `keras.KerasTensor`. Its inputs.

    Returns:
        bool: True for a tanh.
    """
    ending = ending_of(actor, inputs)
    if ending == "tanh":
        return True
    _warn(actor, ending, "actions, by tanh of any number")
    if ending is None and ends_in_scaled_tanh(actor, inputs):
        warnings.warn(
            f"Expected {actor.name!r} to end in tanh, or in a layer without "
            "activation: the agent stretches -1 ... 1 to the bounds of the "
            "actions itself. Received: a network that scales its tanh, of "
            "which the agent takes another one, so that the bounds are never "
            "reached (e.g. 1.93 of 2): leave the scaling out.",
            UserWarning,
            stacklevel=2,
        )
    return False


def check_value_ending(
    critic: keras.Model, inputs: Tree[Tensor], output: int = 0
) -> None:
    """Warns if the output of a value network is bounded.

    Args:
        critic: `keras.Model`. Returns values, of states or of actions.
        inputs: `keras.KerasTensor` or a list of them. Its inputs.
        output: int. Which of several outputs. Defaults to `0`.
    """
    ending = ending_of(critic, inputs, output)
    what = "values, which are unbounded"
    if ending == "softmax":
        what += " (a softmax of one unit is always 1)"
    _warn(critic, ending, what)


def _within_one(space: gymnasium.spaces.Box) -> bool:
    """Returns whether all actions are within the range of tanh."""
    return bool((space.low >= -1.0).all() and (space.high <= 1.0).all())


def _warn(network: keras.Model, ending: str | None, what: str) -> None:
    """Warns of an activation that bounds a network's output."""
    if ending is None:
        return
    warnings.warn(
        f"Expected {network.name!r} to return {what}. Received: a network that "
        f"ends in {ending}. It trains, but to a wrong result: give its last "
        "layer no activation.",
        UserWarning,
        stacklevel=2,
    )
