"""Creation of exploration noise from an argument of the user."""

import numbers
from typing import Any

import keras

from keras_rl2.exploration.exploration_noise import ExplorationNoise
from keras_rl2.exploration.gaussian_noise import GaussianNoise
from keras_rl2.exploration.ornstein_uhlenbeck_noise import (
    OrnsteinUhlenbeckNoise,
)
from keras_rl2.exploration.pink_noise import PinkNoise

GivenNoise = ExplorationNoise | float | str | dict[str, Any]
"""Exploration noise, or a short form of one."""

_KINDS: dict[str, type[ExplorationNoise]] = {
    "gaussian": GaussianNoise,
    "ornstein_uhlenbeck": OrnsteinUhlenbeckNoise,
    "pink": PinkNoise,
}


def exploration_noise(
    x: GivenNoise | None,
) -> ExplorationNoise | None:
    """Makes exploration noise from a short form.

    Args:
        x: None for no noise; float, the scale of a `GaussianNoise`; str, the
            name `"gaussian"`, `"ornstein_uhlenbeck"` or `"pink"`; dict, a
            config such as `{"class_name": "gaussian", "config": {"scale":
            0.2}}` or one by `keras.saving.serialize_keras_object`; or an
            `ExplorationNoise`.

    Returns:
        `ExplorationNoise` or None.

    Raises:
        ValueError: If it is none of these, or a setting is wrong.

    Example:

    >>> exploration_noise(0.2)
    GaussianNoise(scale=0.2)
    >>> exploration_noise("ornstein_uhlenbeck")
    OrnsteinUhlenbeckNoise(scale=0.2, theta=0.15, dt=0.01)
    """
    if x is None or isinstance(x, ExplorationNoise):
        return x
    if isinstance(x, str):
        return _from_name(x)
    if isinstance(x, dict):
        return _from_config(x)
    if isinstance(x, numbers.Real) and not isinstance(x, bool):
        return GaussianNoise(x)
    raise ValueError(
        "Expected exploration noise: None, a number, a name, a config or an "
        f"ExplorationNoise. Received: {x!r}"
    )


def _from_name(
    class_name: str, config: dict[str, Any] | None = None
) -> ExplorationNoise:
    """Makes a noise of a kind that is known by name."""
    if class_name not in _KINDS:
        raise ValueError(
            f"Expected the name of exploration noise, one of {list(_KINDS)}. "
            f"Received: {class_name!r}"
        )
    noise: ExplorationNoise = _KINDS[class_name].from_config(config or {})
    return noise


def _from_config(config: dict[str, Any]) -> ExplorationNoise:
    """Makes a noise from a short or a serialised config."""
    try:
        if "registered_name" in config:
            noise = keras.saving.deserialize_keras_object(config)
        else:
            noise = _from_name(**config)
    except (AttributeError, ImportError, KeyError, TypeError) as error:
        raise ValueError(
            "Expected a config of exploration noise, such as "
            "{'class_name': 'gaussian', 'config': {'scale': 0.2}}. "
            f"Received: {config}"
        ) from error
    return _checked(noise, config)


def _checked(noise: object, config: dict[str, Any]) -> ExplorationNoise:
    """Raises an error for the config of another kind of object."""
    if not isinstance(noise, ExplorationNoise):
        raise ValueError(
            "Expected a config of exploration noise. "
            f"Received: that of a {type(noise).__name__}, {config}"
        )
    return noise
