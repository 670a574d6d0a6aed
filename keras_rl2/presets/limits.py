"""Limits of presets of unknown origin.

A preset that is written in Python, or changed on the command line, may ask for
anything: whoever asks knows the machine. A file may have been made by others.
"""

from collections.abc import Mapping
from typing import Any

from keras_rl2.presets.preset import Preset

# Makes environments of the package `gym`, of any name, from any module.
_NOT_FROM_FILES = ("GymV21Environment", "GymV26Environment")
_MOST_VALUES = 1000
#: The largest that a file may ask for, where memory or time depend on it.
MOST: Mapping[str, int] = {
    "num_envs": 2**16,
    "agent.atoms": 10_000,
    "agent.num_samples": 10_000,
    "dataset.batch_size": 2**20,
    "dataset.burn_in": 2**16,
    "dataset.capacity": 10**8,
    "dataset.horizon": 10**6,
    "dataset.n_step": 2**16,
    "dataset.rounds_per_epoch": 10**6,
    "dataset.sequence_length": 2**16,
    "dataset.steps_per_round": 10**6,
    "dataset.updates_per_round": 10**6,
    "dataset.warm_up": 10**8,
}
# Steps that are kept at a time, and weights between hidden layers.
_MOST_STEPS = 10**7
_MOST_WEIGHTS = 10**8
_MOST_LAYERS = 100


def imports_module(environment: str) -> bool:
    """Returns whether making an environment imports a module of its id.

    Args:
        environment: str. Its id.

    Returns:
        bool.

    Example:

    >>> imports_module("my_package:Mine-v0"), imports_module("ALE/Pong-v5")
    (True, False)
    """
    name = environment.rpartition("/")[2]
    return ":" in environment or name.startswith(_NOT_FROM_FILES)


def check(preset: Preset) -> None:
    """Raises an error for a preset that would take too much memory or time.

    Args:
        preset: `Preset`. The preset of the file.

    Raises:
        ValueError: If something is larger than any preset should have it.
    """
    for name, most in MOST.items():
        section, _, key = name.rpartition(".")
        value = (
            getattr(preset, section).get(key)
            if section
            else getattr(preset, key)
        )
        if isinstance(value, int) and value > most:
            raise _too_much(name, value, most)
    steps = preset.num_envs * int(preset.dataset.get("horizon", 1))
    if steps > _MOST_STEPS:
        raise _too_much("num_envs * dataset.horizon", steps, _MOST_STEPS)
    widths = preset.networks.get("hidden", [])
    if len(widths) > _MOST_LAYERS:
        raise _too_much(
            "the length of networks.hidden", len(widths), _MOST_LAYERS
        )
    weights = sum(
        max(a, 1) * max(b, 1)
        for a, b in zip([1, *widths], [*widths, 1000], strict=True)
    )
    if widths and weights > _MOST_WEIGHTS:
        raise _too_much(
            "the weights of networks.hidden", weights, _MOST_WEIGHTS
        )
    check_env_kwargs(preset.env_kwargs)


def check_env_kwargs(env_kwargs: object) -> dict[str, Any]:
    """Raises an error for arguments of an environment that are no settings.

    Args:
        env_kwargs: Plain data of a file.

    Returns:
        dict: the same.

    Raises:
        ValueError: If it is no dict with strings as keys, or a large one.
    """
    if not isinstance(env_kwargs, dict):
        raise ValueError(
            "Expected `env_kwargs` to be a dict of settings. Received: a "
            f"{type(env_kwargs).__name__}"
        )
    rest: list[Any] = [env_kwargs]
    count = 0
    while rest:
        each = rest.pop()
        count += 1
        if isinstance(each, dict):
            rest += each.values()
        elif isinstance(each, list):
            rest += each
        if count > _MOST_VALUES:
            raise ValueError(
                f"Expected at most {_MOST_VALUES} values in `env_kwargs` of a "
                "file. Received: more"
            )
    return env_kwargs


def _too_much(name: str, value: int, most: int) -> ValueError:
    """Makes the error for a setting that is too large."""
    shown = f"{value:,}" if value < 10**15 else "a far larger number"
    return ValueError(
        f"Expected {name} of a file to be at most {most:,}. Received: {shown}"
    )
