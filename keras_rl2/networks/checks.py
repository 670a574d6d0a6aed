"""Checks of networks against spaces, before anything is trained."""

from collections.abc import Sequence
from typing import Any
from typing import cast

import gymnasium
import keras
import numpy as np

from keras_rl2.basics.arguments import either
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.inputs import Memory
from keras_rl2.networks.inputs import run_memory
from keras_rl2.networks.inputs import run_network
from keras_rl2.networks.model_layers import HasLayers
from keras_rl2.networks.model_layers import all_layers
from keras_rl2.networks.task import Task
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

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
        ValueError: If the space is none of them, or an unbounded Box.
    """
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


def _run_memory(network: Memory, encoded: Tree[Tensor]) -> Outputs:
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
