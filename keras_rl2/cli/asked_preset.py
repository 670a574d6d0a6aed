"""The settings that options of a command ask for."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_rl2.cli import errors

if TYPE_CHECKING:
    from keras_rl2.presets import Preset

#: What `--preset` calls an algorithm's own settings.
DEFAULTS = "default"


def find_preset(name: str, arguments: argparse.Namespace) -> "Preset":
    """Finds a preset by file or name; says so where there is none.

    Args:
        name: str. Of the algorithm, as its class has it.
        arguments: argparse.Namespace. What was typed: `preset`, `environment`.

    Returns:
        `Preset`.

    Raises:
        CommandError: If it is one of another algorithm.
        ValueError: If there is none of that name.
    """
    preset = _found(name, arguments)
    if preset.algorithm != name:
        raise errors.CommandError(
            f"--preset {arguments.preset} is one of {preset.algorithm}, not "
            f"of {name}"
        )
    return preset


def asked_settings(
    preset: "Preset", arguments: argparse.Namespace
) -> dict[str, Any]:
    """Returns what is to be another than a preset has it.

    Args:
        preset: `Preset`. As `find_preset` found it.
        arguments: argparse.Namespace. What was typed: `settings`,
            `environment`, `env_kwargs`, `envs`, `steps`.

    Returns:
        dict, for `Preset.with_settings`.
    """
    # After --set: an option of its own is the clearer word.
    settings = dict(arguments.settings)
    settings["environment"] = arguments.environment
    if preset.environment != arguments.environment:
        # Of another environment, which this one may know nothing of.
        settings.setdefault("env_kwargs", {})
    if arguments.env_kwargs:
        settings["env_kwargs"] = settings.get(
            "env_kwargs", preset.env_kwargs
        ) | dict(arguments.env_kwargs)
    if arguments.envs is not None:
        settings["num_envs"] = arguments.envs
    if arguments.steps is not None:
        settings["total_steps"] = arguments.steps
    return settings


def _found(name: str, arguments: argparse.Namespace) -> "Preset":
    """Finds a preset by file or name."""
    from keras_rl2 import presets

    asked, env_id = arguments.preset, arguments.environment
    if asked == DEFAULTS:
        return presets.default(name, env_id)
    if asked is not None and (asked.endswith(".json") or Path(asked).is_file()):
        return presets.read(asked)
    if asked is not None:
        return presets.find(name, asked)
    if any(each.algorithm == name for each in presets.available(env_id)):
        return presets.find(name, env_id)
    print(f"no preset of {name} for {env_id}: the algorithm's defaults")
    return presets.default(name, env_id)
