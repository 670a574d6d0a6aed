"""Checks of networks against spaces, before anything is trained."""

import math
import warnings
from collections.abc import Sequence
from typing import Any
from typing import Protocol
from typing import cast

import gymnasium
import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2.basics.arguments import either
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.inputs import Memory
from keras_rl2.networks.inputs import run_memory
from keras_rl2.networks.inputs import run_network
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.tasks.task import Task

Outputs = Tensor | Sequence[Tensor]
"""Output of a network: one tensor, or several."""


def check_is_network(name: str, network: object) -> None:
    """Raises unless a network is a Keras model.

    Args:
        name: str. Name of the argument.
        network: Any. Must be a `keras.Model`.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(network, keras.Model):
        raise ValueError(
            f"Expected `{name}` to be a `keras.Model` (`for_env(env)` makes "
            "an agent with default networks). "
            f"Received: {network!r} of type {type(network).__name__}"
        )


def output_sizes(
    task: Task,
    actor: keras.Model,
    critic: keras.Model | None,
    needs_value: bool = True,
) -> tuple[int, int]:
    """Runs an actor and a critic symbolically, building them if need be.

    Args:
        task: `Task`. The agent's task.
        actor: `keras.Model`. Takes observations.
        critic: `keras.Model` or None, where the actor has two outputs.
        needs_value: bool. Whether an actor without a value raises an error.
            Defaults to `True`.

    Returns:
        Width of the policy's output, width of the value's.

    Raises:
        ValueError: If a network does not take the observation, or an actor
            without a critic does not have two outputs.
    """
    outputs = _run("actor", actor, task)
    # Used as a tensor only where it is one.
    single = cast(Tensor, outputs)
    if critic is None:
        pair = isinstance(outputs, (list, tuple)) and len(outputs) == 2
        if not pair and (needs_value or not hasattr(outputs, "shape")):
            raise ValueError(
                "Expected a critic, or one network with two outputs (policy, "
                f"value). Received: critic=None and outputs {outputs!r}"
            )
        policy, value = (
            cast(tuple[Tensor, Tensor], outputs)
            if pair
            else (single, single[:, :1])
        )
    else:
        policy = single
        value = cast(Tensor, _run("critic", critic, task))
    for name, output in (("policy", policy), ("value", value)):
        if not hasattr(output, "shape") or len(output.shape) > 2:
            raise ValueError(
                f"Expected the {name} output to be one tensor of shape "
                f"(batch, units). Received: {output!r}"
            )
    width = value.shape[-1] if len(value.shape) == 2 else 1
    return int(policy.shape[-1]), int(width)


def check_outputs(task: Task, sizes: tuple[int, int]) -> None:
    """Raises unless the outputs fit the action space.

    Args:
        task: `Task`. The agent's task.
        sizes: Widths of the policy's and the value's output.

    Raises:
        ValueError: If a width is not an expected one.
    """
    policy_size, value_size = sizes
    expected = task.head.parameter_sizes
    if policy_size not in expected:
        raise ValueError(
            f"Expected the actor's output to have {either(expected)} units "
            f"for the action space {task.action_space}. "
            f"Received: {policy_size} units"
        )
    if value_size != 1:
        raise ValueError(
            "Expected the critic's output to have 1 unit, the value. "
            f"Received: {value_size} units"
        )


def check_action_kind(
    agent_class: type,
    space: gymnasium.Space[Any],
    kinds: tuple[type, ...],
) -> None:
    """Raises unless an algorithm supports the action space.

    Args:
        agent_class: Class of the agent.
        space: `gymnasium.Space`. The action space.
        kinds: Classes of the supported spaces.

    Raises:
        ValueError: If the space is none of them.
    """
    if not isinstance(space, kinds):
        raise ValueError(
            f"Expected an action space that {agent_class.__name__} can act "
            f"in, {either(tuple(kind.__name__ for kind in kinds))}; PPO acts "
            f"in any. Received: {space}"
        )


def check_policy(task: Task, actor: keras.Model, *units: int) -> int:
    """Raises unless a policy network fits; builds it if need be.

    Args:
        task: `Task`. The agent's task.
        actor: `keras.Model`. Takes observations.
        *units: int. Accepted widths of the output.

    Returns:
        int: the width that it has.

    Raises:
        ValueError: If it does not take observations or has another width.
    """
    return _check_width("actor", _run("actor", actor, task), *units)


def check_critic(
    task: Task,
    critic: keras.Model,
    action: keras.KerasTensor | None,
    units: int,
    name: str = "critic",
) -> None:
    """Raises unless a critic fits; builds it if need be.

    Args:
        task: `Task`. The agent's task.
        critic: `keras.Model`. From observations to values.
        action: `keras.KerasTensor` or None. The action input, if it has one.
        units: int. Expected width of the output.
        name: str. Name of the network in messages. Defaults to `"critic"`.

    Raises:
        ValueError: If it does not take its inputs or has another width.
    """
    _check_width(name, _run(name, critic, task, action), units)


def check_q_network(
    task: Task,
    network: keras.Model,
    *,
    actions: int,
    atoms: int,
    dueling: bool,
) -> None:
    """Raises unless a Q-network fits; builds it if need be.

    Args:
        task: `Task`. The agent's task.
        network: `keras.Model`. Takes observations.
        actions: int. Number of actions.
        atoms: int. Outputs of each action.
        dueling: bool. Whether the value of the state is an output too.

    Raises:
        ValueError: If it does not take observations or has another width.
    """
    output = _run("q_network", network, task)
    units = (actions + bool(dueling)) * atoms
    shape: tuple[Any, ...] | None = getattr(output, "shape", None)
    if shape is None or len(shape) != 2 or shape[-1] != units:
        what = f"{actions} actions"
        if dueling:
            what = f"the value of the state and the advantages of {what}"
        if atoms > 1:
            what += f", {atoms} atoms each"
        raise ValueError(
            "Expected the q_network's output to be one tensor of shape "
            f"(batch, {units}): {what}. Received: {output!r}"
        )


def _check_width(name: str, output: Outputs, *units: int) -> int:
    """Raises unless an output has the shape (batch, units)."""
    shape: tuple[Any, ...] | None = getattr(output, "shape", None)
    if shape is None or len(shape) != 2 or shape[-1] not in units:
        raise ValueError(
            f"Expected the {name}'s output to be one tensor of shape (batch, "
            f"{either(units)}). Received: {output!r}"
        )
    return int(shape[-1])


class HasLayers(Protocol):
    """A model, or a layer with nested layers."""

    @property
    def layers(self) -> Sequence[keras.layers.Layer]:
        """The nested networks or layers."""


def all_layers(agent: HasLayers) -> list[keras.layers.Layer]:
    """Returns all layers of an agent's networks, each once.

    Args:
        agent: `keras.Model`. Its networks may be nested and may share layers.

    Returns:
        list of `keras.layers.Layer` in order of appearance.
    """
    found: dict[int, keras.layers.Layer] = {}

    def visit(model: HasLayers) -> None:
        for layer in model.layers:
            if id(layer) not in found:
                found[id(layer)] = layer
                if hasattr(layer, "layers"):
                    visit(cast(keras.Model, layer))

    visit(agent)
    return list(found.values())


def refuse_stateful(agent: HasLayers) -> None:
    """Raises if a layer keeps a state from one call to the next.

    Args:
        agent: `keras.Model`. The agent with the networks.

    Raises:
        ValueError: If there is one.
    """
    for layer in all_layers(agent):
        if getattr(layer, "stateful", False):
            raise ValueError(
                "Expected networks without a state between two calls, "
                "since batches mix episodes: stack observations with "
                "`gymnasium.wrappers.FrameStackObservation` and use "
                f"`stateful=False`. Received: {layer.name!r} with stateful=True"
            )


def _run(
    name: str,
    network: keras.Model,
    task: Task,
    action: keras.KerasTensor | None = None,
) -> Outputs:
    """Calls a network symbolically."""
    encoded = task.encode.network_input
    try:
        outputs: Outputs
        if isinstance(network, Memory):
            outputs = _run_memory(network, encoded)
        else:
            outputs = run_network(network, encoded, action=action)
        return outputs
    except Exception as error:
        raise ValueError(
            f"Expected the {name} to take {_shapes(encoded, action)} for the "
            f"action space {task.action_space} and the observation space "
            f"{task.observation_space}. Received: {network.name!r}, which "
            f"raised {type(error).__name__}: {error}"
        ) from error


def _run_memory(network: Memory, encoded: Any) -> Outputs:
    """Calls a recurrent network for one step."""

    def symbol(shape: tuple[int | None, ...], dtype: str) -> Any:
        return keras.KerasTensor(shape, dtype)

    outputs, _ = run_memory(
        network,
        map_leaves(
            lambda each: symbol((None, None, *each.shape[1:]), each.dtype),
            encoded,
        ),
        symbol((None, None), "float32"),
        tuple(
            symbol((None, *np.shape(each)[1:]), "float32")
            for each in network.initial_state(1)
        ),
    )
    # [B, T, ...] -> [B, ...]
    first: Outputs = keras.tree.map_structure(lambda each: each[:, 0], outputs)
    return first


def _shapes(encoded: Any, action: keras.KerasTensor | None) -> str:
    """Describes the inputs of a network by their shapes."""
    if is_leaf(encoded):
        seen = f"observations of shape {tuple(encoded.shape)}"
        start = "a list of "
    else:
        shapes = {
            path: tuple(leaf.shape) for path, leaf in named_leaves(encoded)
        }
        seen, start = f"observations of shapes {shapes}", ""
    if action is None:
        return seen
    return f"{start}{seen} and actions of shape {tuple(action.shape)}"


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


def ending_of(network: keras.Model, inputs: Any, output: int = 0) -> str | None:
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


def ends_in_scaled_tanh(network: keras.Model, inputs: Any) -> bool:
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
    network: keras.Model, inputs: Any, output: int
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


def one_value_each(value: Tensor) -> Tensor:
    """Turns a critic's output into one value for each sample.

    Args:
        value: `[B, 1]` or `[B]`. The output.

    Returns:
        `[B]` float32.
    """
    if len(value.shape) == 2:
        value = value[:, 0]
    return ops.cast(value, "float32")


def check_policy_ending(
    actor: keras.Model,
    inputs: Any,
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


def check_action_ending(actor: keras.Model, inputs: Any) -> bool:
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
    critic: keras.Model, inputs: Any, output: int = 0
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


# Random numbers of an update up to which XLA is not slower on a CPU.
_FEW = 512
# Attributes with the rate of the noise; a layer whose rate is 0 draws none.
_RATES = ("rate", "dropout", "recurrent_dropout", "stddev")


def drawing_layers(
    agent: HasLayers, rows: int | None = None
) -> list[keras.layers.Layer]:
    """Returns the layers that draw random numbers when they are trained.

    Args:
        agent: `keras.Model`. The agent with the networks.
        rows: int or None. Size of a minibatch. Leaves out layers that draw
            only few numbers for it, e.g. an RNN with Dropout of its few
            inputs, which is the same at each step. Defaults to `None`.

    Returns:
        list of `keras.layers.Layer`, e.g. Dropout and noise.

    Example:

    >>> from keras import layers
    >>> network = keras.Sequential(
    ...     [layers.Dropout(0.0), layers.Dropout(0.1, name="one")])
    >>> [layer.name for layer in drawing_layers(network)]
    ['one']
    """
    return [
        layer
        for layer in all_layers(agent)
        if any(
            _draws(each) and not (rows and _numbers(each) * rows <= _FEW)
            for each in layers_within(layer)
        )
    ]


def layers_within(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Returns a layer and its nested layers, e.g. the cell of an RNN.

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
    """Returns whether a layer itself draws random numbers."""
    seeds = (keras.random.SeedGenerator,)
    if not any(isinstance(each, seeds) for each in vars(layer).values()):
        return False
    rates = [getattr(layer, name, None) for name in _RATES]
    given = [rate for rate in rates if rate is not None]
    return any(given) or not given


def _numbers(layer: keras.layers.Layer) -> float:
    """Returns the number of random numbers per row, as far as known."""
    cells = (
        keras.layers.LSTMCell,
        keras.layers.GRUCell,
        keras.layers.SimpleRNNCell,
    )
    if not isinstance(layer, cells) or layer.recurrent_dropout:
        return math.inf
    return float(layer.kernel.shape[0])
