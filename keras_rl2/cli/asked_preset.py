"""The preset and settings that a command line asks for."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_rl2.cli import errors

if TYPE_CHECKING:
    from keras_rl2.presets import Preset

#: The name of an algorithm's own settings in `--preset`.
DEFAULTS = "default"


def find_preset(name: str, arguments: argparse.Namespace) -> "Preset":
    """Finds a preset by file or name; prints a line if there is none.

    Args:
        name: str. The algorithm's class name.
        arguments: argparse.Namespace. With `preset` and `environment`.

    Returns:
        `Preset`.

    Raises:
        CommandError: If the preset is for another algorithm.
        ValueError: If no preset has that name.
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
    """Returns the settings that options change in a preset.

    Args:
        preset: `Preset`. The result of `find_preset`.
        arguments: argparse.Namespace. With `settings`,
            `environment`, `env_kwargs`, `envs`, `steps`.

    Returns:
        dict, for `Preset.with_settings`.
    """
    # After --set: a dedicated option takes precedence.
    settings = dict(arguments.settings)
    settings["environment"] = arguments.environment
    if preset.environment != arguments.environment:
        # Arguments of the preset's environment may not exist in this one.
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
