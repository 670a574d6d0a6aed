"""Checks of networks against spaces, before anything is trained."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any
from typing import cast

import gymnasium
import keras
import numpy as np

from keras_rl2.basics.arguments import either
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.network_inputs import Memory
from keras_rl2.networks.network_inputs import run_memory
from keras_rl2.networks.network_inputs import run_network
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

if TYPE_CHECKING:
    from keras_rl2.agents.agent import Agent
    from keras_rl2.agents.on_policy_agent import OnPolicyAgent

Outputs = Tensor | Sequence[Tensor]
"""What a network of somebody's own gives."""


def check_is_network(name: str, network: object) -> None:
    """Refuses what is not a Keras model.

    Args:
        name: str. Of the argument.
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


def output_sizes(agent: "OnPolicyAgent") -> tuple[int, int]:
    """Runs the networks symbolically, building them if need be.

    Args:
        agent: `OnPolicyAgent` whose spaces are set.

    Returns:
        Width of the policy's output, width of the value's.

    Raises:
        ValueError: If a network does not take the observation, or one without
            a critic has not two outputs.
    """
    outputs = _run("actor", agent.actor, agent)
    # As such looked at only where it is one tensor.
    single = cast(Tensor, outputs)
    if agent.critic is None:
        pair = isinstance(outputs, (list, tuple)) and len(outputs) == 2
        if not pair and (agent.needs_value or not hasattr(outputs, "shape")):
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
        value = cast(Tensor, _run("critic", agent.critic, agent))
    for name, output in (("policy", policy), ("value", value)):
        if not hasattr(output, "shape") or len(output.shape) > 2:
            raise ValueError(
                f"Expected the {name} output to be one tensor of shape "
                f"(batch, units). Received: {output!r}"
            )
    width = value.shape[-1] if len(value.shape) == 2 else 1
    return int(policy.shape[-1]), int(width)


def check_outputs(agent: "OnPolicyAgent", sizes: tuple[int, int]) -> None:
    """Refuses outputs that do not fit the action space.

    Args:
        agent: `OnPolicyAgent` whose spaces are set.
        sizes: Widths of the policy's and the value's output.

    Raises:
        ValueError: If a width is not one that is expected.
    """
    policy_size, value_size = sizes
    expected = agent.policy_head.parameter_sizes
    if policy_size not in expected:
        raise ValueError(
            f"Expected the actor's output to have {either(expected)} units "
            f"for the action space {agent.action_space}. "
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
    """Refuses action spaces that an algorithm cannot act in.

    Args:
        agent_class: Class of the agent.
        space: `gymnasium.Space`. Of actions.
        kinds: Classes of spaces that it takes.

    Raises:
        ValueError: If the space is none of them.
    """
    if not isinstance(space, kinds):
        raise ValueError(
            f"Expected an action space that {agent_class.__name__} can act "
            f"in, {either(tuple(kind.__name__ for kind in kinds))}; PPO acts "
            f"in any. Received: {space}"
        )


def check_policy(agent: "Agent", actor: keras.Model, *units: int) -> int:
    """Refuses a policy network that does not fit, building it if need be.

    Args:
        agent: `OffPolicyAgent` whose spaces are set.
        actor: `keras.Model`. From observations.
        *units: int. Widths of the output, any of which will do.

    Returns:
        int: the width that it has.

    Raises:
        ValueError: If it does not take observations or gives another width.
    """
    return _check_width("actor", _run("actor", actor, agent), *units)


def check_critic(
    agent: "Agent",
    critic: keras.Model,
    action: keras.KerasTensor | None,
    units: int,
    name: str = "critic",
) -> None:
    """Refuses a critic that does not fit, building it if need be.

    Args:
        agent: `OffPolicyAgent` whose spaces are set.
        critic: `keras.Model`. From observations to values.
        action: `keras.KerasTensor` or None. What it is given beside them.
        units: int. Width of the output that is wanted.
        name: str. What the network is called. Defaults to `"critic"`.

    Raises:
        ValueError: If it does not take its inputs or gives another width.
    """
    _check_width(name, _run(name, critic, agent, action), units)


def check_q_network(
    agent: "Agent",
    network: keras.Model,
    *,
    actions: int,
    atoms: int,
    dueling: bool,
) -> None:
    """Refuses a Q-network that does not fit, building it if need be.

    Args:
        agent: `OffPolicyAgent` whose spaces are set.
        network: `keras.Model`. From observations.
        actions: int. Number of actions.
        atoms: int. Outputs of each action.
        dueling: bool. Whether the value of the state is an output too.

    Raises:
        ValueError: If it does not take observations or gives another width.
    """
    output = _run("q_network", network, agent)
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
    """Refuses an output of another shape than (batch, units)."""
    shape: tuple[Any, ...] | None = getattr(output, "shape", None)
    if shape is None or len(shape) != 2 or shape[-1] not in units:
        raise ValueError(
            f"Expected the {name}'s output to be one tensor of shape (batch, "
            f"{either(units)}). Received: {output!r}"
        )
    return int(shape[-1])


def all_layers(agent: keras.Model) -> list[keras.layers.Layer]:
    """Returns all layers within an agent's networks, each of them once.

    Args:
        agent: `keras.Model`. Its networks may be nested and may share layers.

    Returns:
        list of `keras.layers.Layer` in order of appearance.
    """
    found: dict[int, keras.layers.Layer] = {}

    def visit(model: keras.Model) -> None:
        for layer in model.layers:
            if id(layer) not in found:
                found[id(layer)] = layer
                if hasattr(layer, "layers"):
                    visit(cast(keras.Model, layer))

    visit(agent)
    return list(found.values())


def refuse_stateful(agent: keras.Model) -> None:
    """Refuses layers that remember from one call to the next.

    Args:
        agent: `keras.Model`. Whose networks are looked at.

    Raises:
        ValueError: If there is one.
    """
    for layer in all_layers(agent):
        if getattr(layer, "stateful", False):
            raise ValueError(
                "Expected networks that remember nothing between two calls, "
                "since batches mix episodes: stack observations with "
                "`gymnasium.wrappers.FrameStackObservation` and use "
                f"`stateful=False`. Received: {layer.name!r} with stateful=True"
            )


def refuse_memory(agent: "Agent") -> None:
    """Refuses a network that remembers where the algorithm cannot train it.

    Args:
        agent: `Agent` with its networks.

    Raises:
        ValueError: If it cannot.
    """
    if agent.takes_memory:
        return
    for network in agent.acting_networks:
        if isinstance(network, Memory):
            raise ValueError(
                f"Expected networks without memory for {type(agent).__name__}. "
                f"Received: {network.name!r}, which has an `initial_state`"
            )


def _run(
    name: str,
    network: keras.Model,
    agent: "Agent",
    action: keras.KerasTensor | None = None,
) -> Outputs:
    """Calls a network symbolically."""
    encoded = agent.encode.network_input
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
            f"action space {agent.action_space} and the observation space "
            f"{agent.observation_space}. Received: {network.name!r}, which "
            f"raised {type(error).__name__}: {error}"
        ) from error


def _run_memory(network: Memory, encoded: Any) -> Outputs:
    """Calls a network that remembers, for one step."""

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
    """Describes what a network is given."""
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
