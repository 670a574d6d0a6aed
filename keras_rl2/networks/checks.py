"""Checks of networks against spaces, before anything is trained."""

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import gymnasium
import keras
import numpy as np
import tensorflow as tf

from keras_rl2.basics.arguments import either
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.inputs import has_memory
from keras_rl2.networks.inputs import run_memory
from keras_rl2.networks.inputs import run_network
from keras_rl2.networks.model_layers import all_layers
from keras_rl2.networks.model_layers import counting_layers
from keras_rl2.networks.task import Task
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

# Operations that leave the values of an output unchanged.
_PASSED = frozenset(
    {"Cast", "Identity", "IdentityN", "Reshape", "Squeeze", "StopGradient"}
)
# Operations that scale or shift it, by a number that is no part of it.
_SCALES = frozenset({"Mul", "AddV2", "Add", "Sub", "RealDiv", "Div"})
_NUMBERS = frozenset({"Const", "Placeholder", "ReadVariableOp"})
_ENDINGS = ("softmax", "tanh", "sigmoid", "relu")


def check_is_network(name: str, network: object) -> None:
    """Raises unless a network is a Keras model."""
    if not isinstance(network, keras.Model):
        raise ValueError(
            f"Expected `{name}` to be a `keras.Model` (`for_env(env)` makes "
            "an agent with default networks). "
            f"Received: {network!r} of type {type(network).__name__}"
        )


def check_width(
    name: str,
    network: keras.Model,
    task: Task,
    *units: int,
    why: str = "",
    **further: keras.KerasTensor,
) -> int:
    """Raises unless a network fits; builds it if need be.

    `further` are its symbolic inputs beside the observation, by name.
    """
    return _width(name, _run(name, network, task, **further), units, why)


def check_actor_critic(
    task: Task,
    actor: keras.Model,
    critic: keras.Model | None,
    needs_value: bool = True,
) -> int:
    """Raises unless an actor and a critic fit; builds them if need be."""
    policy, value = _run("actor", actor, task), None
    if critic is not None:
        if has_memory(critic):
            raise ValueError(
                "Expected a critic without memory, or one network with two "
                f"outputs (policy, value). Received: {critic.name!r}"
            )
        value = _run("critic", critic, task)
    elif isinstance(policy, (list, tuple)) and len(policy) == 2:
        policy, value = policy
    elif needs_value:
        raise ValueError(
            "Expected a critic, or one network with two outputs (policy, "
            f"value). Received: critic=None and outputs {policy!r}"
        )
    width = _width(
        "actor",
        policy,
        task.head.parameter_sizes,
        f" for the action space {task.action_space}",
    )
    # Values without an axis of units are fine, too.
    if value is not None and len(getattr(value, "shape", ())) != 1:
        _width("critic", value, (1,), ", the value")
    return width


def _width(name: str, output: Any, units: Sequence[int], why: str) -> int:
    """Raises unless an output has the shape (batch, units)."""
    shape: tuple[Any, ...] = getattr(output, "shape", ())
    if len(shape) != 2 or shape[-1] not in units:
        received = f"{shape[-1]} units" if len(shape) == 2 else repr(output)
        raise ValueError(
            f"Expected the {name}'s output to have {either(units)} units"
            f"{why}. Received: {received}"
        )
    return int(shape[-1])


def check_action_kind(
    agent_class: type,
    space: gymnasium.Space[Any],
    kinds: tuple[type, ...],
) -> None:
    """Raises unless an algorithm supports the action space."""
    unbounded = isinstance(space, gymnasium.spaces.Box) and not (
        space.is_bounded("both")
    )
    if not isinstance(space, kinds) or unbounded:
        names = [
            "Box with finite bounds"
            if kind is gymnasium.spaces.Box
            else kind.__name__
            for kind in kinds
        ]
        raise ValueError(
            f"Expected an action space that {agent_class.__name__} can act "
            f"in, {either(names)}; PPO acts in any. Received: {space}"
        )


def check_supported(agent: keras.Model) -> None:
    """Raises for memory, or layers that count rows, that agents do not take."""
    name, memory = type(agent).__name__, agent.policy.memory
    if memory is not None and not agent.takes_memory:
        raise ValueError(
            f"Expected networks without memory for {name}. Received: "
            f"{memory.name!r}, which has an `initial_state`"
        )
    if memory is not None or not agent.takes_batch_normalization:
        for layer in counting_layers(agent):
            raise ValueError(
                f"Expected networks of {name} without BatchNormalization, "
                "which would count what is not learned from. "
                f"Received: {layer.name!r}"
            )


def refuse_stateful(agent: keras.Model) -> None:
    """Raises if a layer keeps a state from one call to the next."""
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
    **further: keras.KerasTensor,
) -> Any:
    """Calls a network symbolically, one with memory for one step."""
    encoded = task.encode.network_input
    try:
        if has_memory(network):
            return _run_memory(network, encoded, **further)
        return run_network(network, encoded, **further)
    except Exception as error:
        shapes = map_leaves(lambda leaf: tuple(leaf.shape), encoded)
        expected = f"observations of shape {shapes}"
        for key, each in further.items():
            expected += f", {key} of shape {tuple(each.shape)}"
        raise ValueError(
            f"Expected the {name} to take {expected} for the "
            f"action space {task.action_space} and the observation space "
            f"{task.observation_space}. Received: {network.name!r}, which "
            f"raised {type(error).__name__}: {error}"
        ) from error


def _run_memory(network: Any, encoded: Tree[Tensor], **further: Any) -> Any:
    """Calls a recurrent network for one step."""

    def sequence(shape: Sequence[int | None], dtype: str = "float32") -> Any:
        return keras.KerasTensor((None, None, *shape), dtype)

    steps = {key: sequence(each.shape[1:]) for key, each in further.items()}
    outputs, _ = run_memory(
        functools.partial(network, **steps),
        map_leaves(lambda each: sequence(each.shape[1:], each.dtype), encoded),
        sequence(()),
        tuple(
            keras.KerasTensor((None, *np.shape(each)[1:]), "float32")
            for each in network.initial_state(1)
        ),
    )
    # [B, T, ...] -> [B, ...]
    return keras.tree.map_structure(lambda each: each[:, 0], outputs)


def check_policy_ending(
    actor: keras.Model,
    inputs: Tree[Tensor],
    action_space: gymnasium.Space[Any],
    squash: bool = False,
) -> bool:
    """Returns whether a policy network outputs probabilities, not logits.

    Warns if the last activation restricts the policy.
    """
    ending = _ending_of(actor, inputs)
    if isinstance(action_space, gymnasium.spaces.Discrete):
        if ending == "softmax":
            return True
        _warn(actor, ending, "the logits of actions, which are unbounded")
    elif not isinstance(action_space, gymnasium.spaces.Box):
        _warn(actor, ending, "the logits of choices, which are unbounded")
    elif (
        squash
        or ending != "tanh"
        # Tanh cannot reach bounds beyond its range.
        or (action_space.low < -1.0).any()
        or (action_space.high > 1.0).any()
    ):
        _warn(actor, ending, "the means of actions, within all their bounds")
    return False


def check_action_ending(actor: keras.Model, inputs: Tree[Tensor]) -> bool:
    """Returns whether a deterministic policy outputs squashed actions.

    Warns of any other ending that bounds it.
    """
    ending = _ending_of(actor, inputs)
    if ending == "tanh":
        return True
    _warn(actor, ending, "actions, by tanh of any number")
    if ending is None and _ends_in_scaled_tanh(actor, inputs):
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
    """Warns if the output of a value network is bounded."""
    ending = _ending_of(critic, inputs, output)
    what = "values, which are unbounded"
    if ending == "softmax":
        what += " (a softmax of one unit is always 1)"
    _warn(critic, ending, what)


def _ending_of(
    network: keras.Model, inputs: Tree[Tensor], output: int = 0
) -> str | None:
    """Returns the activation that a network ends in, or None for any other.

    It may be an argument of a layer, a layer, or an operation in `call`: where
    the last layer does not show it, it is found in the graph of the network.
    """
    layer, name = _last_layer(network), ""
    if isinstance(layer, keras.layers.Dense):
        name = getattr(layer.activation, "__name__", "")
    if name not in (*_ENDINGS, "linear"):
        name = _last_operation(network, inputs, output).type.lower()
    return name if name in _ENDINGS else None


def _ends_in_scaled_tanh(network: keras.Model, inputs: Tree[Tensor]) -> bool:
    """Returns whether a network's output is a scaled or shifted tanh."""
    if isinstance(_last_layer(network), keras.layers.Dense):
        return False
    operation, scaled = _last_operation(network, inputs, 0), False
    while operation.type in _SCALES:
        sources = [_source(each.op) for each in operation.inputs]
        varying = [each for each in sources if each.type not in _NUMBERS]
        if len(varying) != 1:
            return False
        operation, scaled = varying[0], True
    return scaled and operation.type == "Tanh"


def _source(operation: tf.Operation) -> tf.Operation:
    """Returns the operation that computes the value passed on by another."""
    while operation.type in _PASSED:
        operation = operation.inputs[0].op
    return operation


def _last_operation(
    network: keras.Model, inputs: Tree[Tensor], output: int
) -> tf.Operation:
    """Returns the operation that computes an output, found in the graph."""
    # This takes some 30 ms for a small network.
    specs = keras.tree.map_structure(
        lambda each: tf.TensorSpec(each.shape, each.dtype), inputs
    )

    def run(arrays: Any) -> Any:
        outputs = network(arrays, training=False)
        return keras.tree.flatten(outputs)[output]

    graph = tf.function(run, autograph=False).get_concrete_function(specs).graph
    return _source(graph.outputs[0].op)


def _last_layer(network: keras.Model) -> keras.Operation | None:
    """Returns the layer or operation that computes the only output, if known.

    A functional network has `operations`, and `keras.Sequential` only layers.
    """
    is_known = len(getattr(network, "outputs", None) or ()) == 1
    operations = getattr(network, "operations", network.layers)
    return operations[-1] if is_known else None


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
