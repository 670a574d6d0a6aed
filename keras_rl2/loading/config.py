"""The classes and functions that a config may name."""

import types
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import keras

from keras_rl2.agents import Agent

_MOST_PARTS = 1_000_000
# Keras' modules of parts of networks and optimizers; none that reads and
# writes files, downloads, or changes settings of the process.
_MODULES = frozenset(
    {
        "builtins",
        "keras",
        "keras.activations",
        "keras.constraints",
        "keras.dtype_policies",
        "keras.initializers",
        "keras.layers",
        "keras.losses",
        "keras.metrics",
        "keras.models",
        "keras.optimizers",
        "keras.quantizers",
        "keras.optimizers.schedules",
        "keras.random",
        "keras.regularizers",
        "keras.src.models.functional",
        "keras.src.models.sequential",
    }
)
# Those that layers are given, which compute numbers from numbers: by module,
# or as Keras finds its own without one.
_FUNCTION_MODULES = frozenset(
    {"builtins", "keras.activations", "keras.losses", "keras.metrics"}
)
_FUNCTIONS = """
    celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish
    hard_tanh leaky_relu linear log_sigmoid log_softmax mish relu relu6 selu
    sigmoid silu soft_shrink softmax softplus softsign sparse_plus
    sparse_sigmoid sparsemax squareplus swish tanh tanh_shrink threshold

    binary_accuracy binary_crossentropy binary_focal_crossentropy
    categorical_accuracy categorical_crossentropy
    categorical_focal_crossentropy categorical_hinge cosine_similarity hinge
    huber kl_divergence log_cosh mean_absolute_error
    mean_absolute_percentage_error mean_squared_error
    mean_squared_logarithmic_error poisson sparse_categorical_accuracy
    sparse_categorical_crossentropy squared_hinge
"""
_OPERATIONS = "keras.src.ops."
# Layers that hold code, read files, or make tables of any size.
_NOT_MADE = frozenset(
    {
        "FlaxLayer",
        "HashedCrossing",
        "Hashing",
        "IntegerLookup",
        "JaxLayer",
        "Lambda",
        "MelSpectrogram",
        "STFTSpectrogram",
        "StringLookup",
        "TFSMLayer",
        "TextVectorization",
        "TorchModuleWrapper",
        "__lambda__",
        "__typespec__",
    }
)
# Names of plain data within the arguments of a layer.
_PLAIN = frozenset(
    {
        "__bytes__",
        "__ellipsis__",
        "__keras_tensor__",
        "__numpy__",
        "__slice__",
        "__tensor__",
    }
)


def check(config: object, custom_objects: Mapping[str, Any]) -> None:
    """Raises an error for a config of anything but an agent.

    Args:
        config: Plain data of unknown origin.
        custom_objects: Mapping. Classes and functions by name, beside the
            registered ones.

    Raises:
        ValueError: If it names a class or function that no agent has.
    """
    if not isinstance(config, dict):
        raise ValueError("its config is no object")
    made = _registered(config, custom_objects)
    if not (isinstance(made, type) and issubclass(made, Agent)):
        raise ValueError(
            f"{_name(config)}, which is no agent that is known here"
        )
    for part in _parts(config):
        if "class_name" in part:
            _check_object(part, custom_objects)
        if isinstance(part.get("inbound_nodes"), list):
            _check_calls(part["inbound_nodes"])


def _parts(config: object) -> Iterator[dict[str, Any]]:
    """Yields all objects within a config, itself first."""
    rest, count = [config], 0
    while rest:
        part = rest.pop()
        count += 1
        if count > _MOST_PARTS:
            raise ValueError(f"a config of more than {_MOST_PARTS} parts")
        if isinstance(part, dict):
            yield part
            rest += part.values()
        elif isinstance(part, list):
            rest += part


def _check_object(part: dict[str, Any], custom: Mapping[str, Any]) -> None:
    """Raises an error for a class or function that is not for agents."""
    name, module = part["class_name"], part.get("module")
    if not isinstance(name, str) or not isinstance(module, str | None):
        raise ValueError(f"{_name(part)}, whose name is no text")
    if name in _PLAIN:
        return
    if name == "function":
        name = part.get("config")
    # Registered classes are code of the running program.
    if name not in _NOT_MADE and _registered(part, custom) is not None:
        return
    if part["class_name"] == "function":
        known = module in _FUNCTION_MODULES and name in _FUNCTIONS.split()
    else:
        known = (module in _MODULES and not _is_function(module, name)) or str(
            module
        ).startswith(_OPERATIONS)
    # Keras finds a name within a module by dots, too.
    if name in _NOT_MADE or not known or "." in str(name):
        raise ValueError(
            f"{_name(part)}, which no agent is made of; a layer of your own "
            "is to be registered, or given in `custom_objects`"
        )


def _is_function(module: str, name: str) -> bool:
    """Returns whether Keras finds a function by the name of a class."""
    found: Any = keras
    for part in [*module.split(".")[1:], name]:
        found = getattr(found, part, None)
    return isinstance(found, types.FunctionType)


def _check_calls(calls: list[Any]) -> None:
    """Raises an error for operations without input, which run at once."""
    for call in calls:
        tensors = (
            part.get("class_name") == "__keras_tensor__"
            for part in _parts(call)
        )
        if not any(tensors):
            raise ValueError("an operation on no input")


def _registered(part: dict[str, Any], custom: Mapping[str, Any]) -> Any:
    """Returns Keras' registered object of a name, or None."""
    name = part.get("registered_name", part.get("class_name"))
    if part.get("class_name") == "function":
        name = part.get("config")
    if not isinstance(name, str):
        return None
    return keras.saving.get_registered_object(name, custom_objects=custom)


def _name(part: dict[str, Any]) -> str:
    """Returns the name of an object in a config."""
    name = part.get("class_name")
    if name == "function":
        name = part.get("config")
    return f"{part.get('module')}.{name}"
