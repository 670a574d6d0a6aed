"""The config of an agent, and its files: saved whole or not at all."""

import contextlib
import types
from collections.abc import Mapping
from typing import Any

import keras

from keras_rl2.basics.inherited_arguments import argument_names
from keras_rl2.networks.model_layers import layers_within
from keras_rl2.networks.network_copies import NetworkCopy
from keras_rl2.networks.network_copies import is_wholly_described
from keras_rl2.spaces.space_configs import space_to_config


def get_config(agent: Any) -> dict[str, Any]:
    """Returns the arguments of the constructor as plain data.

    They are the attributes of the same name, or of the name in
    `argument_attributes`; those without one, or with a value that Keras cannot
    serialize, are left out, as are copies of networks that the agent itself
    makes. A subclass needs a `get_config` of its own only for arguments that it
    does not keep so; its `super().get_config()` returns those of the next
    class.
    """
    names, _ = _names(type(agent))
    values = {"dtype": agent.dtype_policy.name, **agent.given_networks()}
    for name in ("observation_space", "action_space"):
        space = getattr(agent, name)
        values[name] = None if space is None else space_to_config(space)
    config = {
        name: _described(value)
        for name, value in values.items()
        if name in names
    }
    for name in sorted(names):
        attribute = agent.argument_attributes.get(name, name)
        # Any error of a property, or of an object's own `get_config`.
        with contextlib.suppress(Exception):
            if name not in config:
                config[name] = _described(getattr(agent, attribute))
    return config


def check_is_complete(agent: keras.Model) -> None:
    """Raises a `ValueError` unless `get_config` has found all arguments.

    A class with a `get_config` of its own answers for its arguments itself.
    """
    _, required = _names(type(agent))
    missing = sorted(required - agent.get_config().keys())
    if missing:
        raise ValueError(
            f"Expected {type(agent).__name__} to keep each argument of its "
            "constructor as an attribute of the same name that Keras can "
            "serialize, or to return it from `get_config`: a saved agent is "
            f"made from its arguments. Received: none for {missing}"
        )


def _names(kind: type) -> tuple[set[str], set[str]]:
    """Returns the arguments in the config of a base, and those it vouches for.

    A `get_config` between the class and the base adds the arguments of its own
    class to those of the next one, and takes away the ones that its class does
    not have; only those of classes below it are the base's.
    """
    order = kind.__mro__
    base = next(e for e in order if vars(e).get("get_config") is get_config)
    kinds = order[: order.index(base)]
    definers = [
        at for at, each in enumerate(kinds) if "get_config" in vars(each)
    ]
    required = argument_names(kind)
    found = set(required)
    if definers:
        required -= argument_names(kinds[definers[0]])
        found = required | argument_names(order[definers[-1] + 1])
    return found, required


def from_config(
    config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the constructor arguments of an agent from its config."""

    def deserialized(value: object) -> Any:
        if isinstance(value, dict) and "class_name" in value:
            inner = value.get("config")
            name = inner.get("name") if isinstance(inner, dict) else None
            # Paths distinguish the variables of two networks.
            with keras.name_scope(str(name or value["class_name"])):
                return keras.saving.deserialize_keras_object(
                    value, custom_objects=custom_objects
                )
        if isinstance(value, list):
            return [deserialized(each) for each in value]
        return value

    return {key: deserialized(value) for key, value in config.items()}


def _described(value: object) -> Any:
    """Returns an argument as plain data."""
    if isinstance(value, (list, tuple)):
        originals = [
            each for each in value if not isinstance(each, NetworkCopy)
        ]
        return [_described(each) for each in originals]
    return keras.saving.serialize_keras_object(value)


def check_can_be_loaded(networks: Mapping[str, Any]) -> None:
    """Raises a `ValueError` unless loading would restore the same networks."""
    owners: dict[int, keras.Model] = {}
    for network in keras.tree.flatten(dict(networks)):
        for variable in getattr(network, "weights", []):
            other = owners.setdefault(id(variable), network)
            if other is not network:
                raise ValueError(
                    "Expected networks that share no layers, because Keras "
                    "cannot restore two models that do: make one network with "
                    "two outputs, or use `save_weights`. Received: "
                    f"{variable.path!r} of {other.name!r} and {network.name!r}"
                )
        is_copy = isinstance(network, NetworkCopy)
        if network is None or is_copy or is_wholly_described(network):
            continue
        problem = _difference_when_made_again(network)
        if problem is not None:
            raise ValueError(
                f"Expected {type(network).__name__} to have a `get_config` "
                "that returns all arguments of its constructor, which takes "
                "`**kwargs` for those of Keras: a saved agent makes its "
                "networks from it. `save_weights` does not need it. "
                f"Received: {network.name!r}, {problem}"
            )


def _difference_when_made_again(network: keras.Model) -> str | None:
    """Returns the difference of a network made from its config, in words."""
    try:
        restored = type(network).from_config(network.get_config())
        if network.built and not restored.built:
            restored.build_from_config(network.get_build_config())
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    for layer, again in zip(
        *map(layers_within, (network, restored)), strict=False
    ):
        ours, theirs = _plain_attributes(layer), _plain_attributes(again)
        for name in sorted(ours.keys() & theirs.keys()):
            if ours[name] != theirs[name]:
                return f"with {name}={ours[name]}, restored as {theirs[name]}"
    if not restored.built:
        # Its shapes are unknown until the first call.
        return None
    shapes, restored = (
        [tuple(each.shape) for each in model.weights]
        for model in (network, restored)
    )
    different = f"with weights of {shapes}, restored as {restored}"
    return None if shapes == restored else different


def _plain_attributes(layer: keras.layers.Layer) -> dict[str, object]:
    """Returns numbers, strings and Keras' functions among the attributes.

    Only those that the class of the layer sets.
    """
    inherited = vars(keras.Model()).keys() | {"name"}
    return {
        name: value
        for name, value in vars(layer).items()
        if name not in inherited
        and (
            isinstance(value, (int, float, str))
            or (
                str(getattr(value, "__module__", "")).startswith("keras.")
                and isinstance(value, types.FunctionType)
            )
        )
    }
