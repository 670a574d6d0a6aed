"""The networks of an agent as plain data."""

from collections.abc import Mapping
from typing import Any

import keras

from keras_rl2.networks.network_copies import NetworkCopy
from keras_rl2.networks.network_copies import is_wholly_described


def to_config(networks: Mapping[str, object]) -> dict[str, Any]:
    """Returns networks as plain data.

    Args:
        networks: Mapping from arguments of an agent to a `keras.Model`, a list
            of them or None.

    Returns:
        dict with the same keys. Copies that the agent itself makes are left
        out of lists.
    """
    return {name: _described(each) for name, each in networks.items()}


def from_config(
    config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the constructor arguments of an agent from its config.

    Args:
        config: Mapping. The result of `get_config`.
        custom_objects: dict or None. See
            `keras.saving.deserialize_keras_object`. Defaults to `None`.

    Returns:
        dict: networks, schedules and the like as objects, other values
        unchanged.
    """

    def made(value: object) -> Any:
        if isinstance(value, dict) and "class_name" in value:
            # Paths distinguish the variables of two networks.
            with keras.name_scope(_name(value)):
                return keras.saving.deserialize_keras_object(
                    value, custom_objects=custom_objects
                )
        if isinstance(value, list):
            return [made(each) for each in value]
        return value

    return {key: made(value) for key, value in config.items()}


def _name(config: Mapping[str, Any]) -> str:
    """Returns the name of the object that a config describes."""
    inner = config.get("config")
    name: str | None = inner.get("name") if isinstance(inner, dict) else None
    return str(name or config["class_name"])


def _described(network: object) -> Any:
    """Returns one network, or several, as plain data."""
    if isinstance(network, (list, tuple)):
        given = [each for each in network if not isinstance(each, NetworkCopy)]
        return [_described(each) for each in given]
    if network is None:
        return None
    return keras.saving.serialize_keras_object(network)


def check_can_be_loaded(networks: Mapping[str, Any]) -> None:
    """Checks that loading would restore the same networks.

    Args:
        networks: Mapping; see `to_config`.

    Raises:
        ValueError: If Keras could not make a network from its config.
    """
    network: keras.Model | None
    for network in keras.tree.flatten(dict(networks)):
        is_copy = isinstance(network, NetworkCopy)
        if network is None or is_copy or is_wholly_described(network):
            continue
        _check_made_again(network)


def _check_made_again(network: keras.Model) -> None:
    """Raises an error if the config of a network makes another one."""
    try:
        made = type(network).from_config(network.get_config())
        if network.built and not made.built:
            made.build_from_config(network.get_build_config())
        problem = _difference(network, made)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    if problem is None:
        return
    raise ValueError(
        f"Expected {type(network).__name__} to have a `get_config` that "
        "returns all arguments of its constructor, which takes `**kwargs` for "
        "those of Keras: a saved agent makes its networks from it. "
        "`save_weights` does not need it. "
        f"Received: {network.name!r}, {problem}"
    )


def _difference(network: keras.Model, made: keras.Model) -> str | None:
    """Returns the difference of a network made from a config, in words."""
    if not made.built:
        # Its shapes are unknown until the first call.
        return None
    ours, theirs = (
        [tuple(each.shape) for each in model.weights]
        for model in (network, made)
    )
    if ours == theirs:
        return None
    return f"with weights of {ours}, restored as {theirs}"
