"""Checks of what an agent is made from, before anything is trained."""

from typing import Any

import keras
import numpy as np


def check_in_range(**numbers: tuple[Any, float, float]) -> None:
    """Refuses hyper-parameters out of range.

    Args:
        **numbers: name = (value, lowest, highest).

    Raises:
        ValueError: If a value is not a number within its bounds.
    """
    for name, (value, low, high) in numbers.items():
        if not isinstance(value, (int, float, np.number)) or not (
            low <= value <= high
        ):
            raise ValueError(
                f"Expected `{name}` to be a number from {low:g} to {high:g}. "
                f"Received: {name}={value!r}"
            )


def check_is_model(actor: Any, critic: Any) -> None:
    """Refuses networks that are not Keras models.

    Args:
        actor: Any. Must be a `keras.Model`.
        critic: Any. Must be a `keras.Model` or None.

    Raises:
        ValueError: If one is not.
    """
    for name, network in (("actor", actor), ("critic", critic)):
        if name == "critic" and network is None:
            continue
        if not isinstance(network, keras.Model):
            raise ValueError(
                f"Expected `{name}` to be a `keras.Model`. "
                f"Received: {network!r} of type {type(network).__name__}"
            )


def check_is_network(name: str, network: Any) -> None:
    """Refuses what is not a Keras model.

    Args:
        name: str. Of the argument.
        network: Any. Must be a `keras.Model`.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(network, keras.Model):
        raise ValueError(
            f"Expected `{name}` to be a `keras.Model`. "
            f"Received: {network!r} of type {type(network).__name__}"
        )


def check_choice(**choices: tuple[Any, tuple[Any, ...]]) -> None:
    """Refuses arguments that are not among those allowed.

    Args:
        **choices: name = (value, allowed values).

    Raises:
        ValueError: If a value is none of them.
    """
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise ValueError(
                f"Expected `{name}` to be {_either(tuple(map(repr, allowed)))}"
                f". Received: {name}={value!r}"
            )


def output_sizes(agent: Any) -> tuple[int, int]:
    """Runs the networks symbolically, building them if need be.

    Args:
        agent: `ActorCritic` whose spaces are set.

    Returns:
        Width of the policy's output, width of the value's.

    Raises:
        ValueError: If a network does not take the observation, or one without
            a critic has not two outputs.
    """
    encoded = _encoded_input(agent)
    outputs = _run("actor", agent.actor, encoded, agent)
    if agent.critic is None:
        pair = isinstance(outputs, (list, tuple)) and len(outputs) == 2
        if not pair and (agent.needs_value or not hasattr(outputs, "shape")):
            raise ValueError(
                "Expected a critic, or one network with two outputs (policy, "
                f"value). Received: critic=None and outputs {outputs!r}"
            )
        policy, value = outputs if pair else (outputs, outputs[:, :1])
    else:
        policy, value = outputs, _run("critic", agent.critic, encoded, agent)
    for name, output in (("policy", policy), ("value", value)):
        if not hasattr(output, "shape") or len(output.shape) > 2:
            raise ValueError(
                f"Expected the {name} output to be one tensor of shape "
                f"(batch, units). Received: {output!r}"
            )
    width = value.shape[-1] if len(value.shape) == 2 else 1
    return int(policy.shape[-1]), int(width)


def check_outputs(agent: Any, sizes: tuple[int, int]) -> None:
    """Refuses outputs that do not fit the action space.

    Args:
        agent: `ActorCritic` whose spaces are set.
        sizes: Widths of the policy's and the value's output.

    Raises:
        ValueError: If a width is not one that is expected.
    """
    policy_size, value_size = sizes
    expected = agent.policy_head.parameter_sizes
    if policy_size not in expected:
        raise ValueError(
            f"Expected the actor's output to have {_either(expected)} units "
            f"for the action space {agent.action_space}. "
            f"Received: {policy_size} units"
        )
    if value_size != 1:
        raise ValueError(
            "Expected the critic's output to have 1 unit, the value. "
            f"Received: {value_size} units"
        )


def check_action_kind(
    agent_class: type, space: Any, kinds: tuple[type, ...]
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
            f"in, {_either(tuple(kind.__name__ for kind in kinds))}. "
            f"Received: {space}"
        )


def check_policy(agent: Any, actor: Any, units: int) -> None:
    """Refuses a policy network that does not fit, building it if need be.

    Args:
        agent: `OffPolicyAgent` whose spaces are set.
        actor: `keras.Model`. From observations.
        units: int. Width of the output that is wanted.

    Raises:
        ValueError: If it does not take observations or gives another width.
    """
    _check_width(
        "actor", _run("actor", actor, _encoded_input(agent), agent), units
    )


def check_critic(agent: Any, critic: Any, units: int | None = None) -> None:
    """Refuses a critic that does not fit, building it if need be.

    Args:
        agent: `OffPolicyAgent` whose spaces are set.
        critic: `keras.Model`. From a list of observations and actions to one
            value; or from observations to `units` of them.
        units: int or None. Width of the output, one for each action.
            Defaults to `None`.

    Raises:
        ValueError: If it does not take its inputs or gives another width.
    """
    inputs = _encoded_input(agent)
    if units is None:
        shape = (None, *agent.policy_head.action_shape)
        inputs = [inputs, keras.KerasTensor(shape, "float32")]
    _check_width("critic", _run("critic", critic, inputs, agent), units or 1)


def check_q_network(
    agent: Any, network: Any, *, actions: int, atoms: int, dueling: bool
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
    output = _run("q_network", network, _encoded_input(agent), agent)
    units = (actions + bool(dueling)) * atoms
    shape = getattr(output, "shape", None)
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


def _check_width(name: str, output: Any, units: int) -> None:
    """Refuses an output of another shape than (batch, units)."""
    shape = getattr(output, "shape", None)
    if shape is None or len(shape) != 2 or shape[-1] != units:
        raise ValueError(
            f"Expected the {name}'s output to be one tensor of shape (batch, "
            f"{units}). Received: {output!r}"
        )


def all_layers(agent: Any) -> list[keras.layers.Layer]:
    """Returns all layers within an agent's networks, each of them once.

    Args:
        agent: `keras.Model`. Its networks may be nested and may share layers.

    Returns:
        list of `keras.layers.Layer` in order of appearance.
    """
    found: dict[int, keras.layers.Layer] = {}

    def visit(model: Any) -> None:
        for layer in model.layers:
            if id(layer) not in found:
                found[id(layer)] = layer
                if hasattr(layer, "layers"):
                    visit(layer)

    visit(agent)
    return list(found.values())


def _encoded_input(agent: Any) -> keras.KerasTensor:
    """Returns a symbolic batch of what the networks are given."""
    space = agent.observation_space
    if not agent.observation_shape:
        return keras.KerasTensor((None, int(space.n)), "float32")
    shape = (None, *agent.observation_shape)
    is_image = agent.observation_dtype == "uint8" and len(shape) == 4
    return keras.KerasTensor(shape, "uint8" if is_image else "float32")


def _run(name: str, network: Any, encoded: Any, agent: Any) -> Any:
    """Calls a network symbolically."""
    try:
        return network(encoded)
    except Exception as error:
        raise ValueError(
            f"Expected the {name} to take {_shapes(encoded)} for the "
            f"action space {agent.action_space} and the observation space "
            f"{agent.observation_space}. Received: {network.name!r}, which "
            f"raised {type(error).__name__}: {error}"
        ) from error


def _shapes(inputs: Any) -> str:
    """Describes what a network is given."""
    if isinstance(inputs, list):
        observation, action = inputs
        return (
            f"a list of observations of shape {tuple(observation.shape)} and "
            f"actions of shape {tuple(action.shape)}"
        )
    return f"observations of shape {tuple(inputs.shape)}"


def _either(sizes: tuple[Any, ...]) -> str:
    """Writes `2 or 4`."""
    return " or ".join(str(size) for size in sizes)
