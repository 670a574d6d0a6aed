"""Types of command-line arguments."""

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_rl2.cli import errors

if TYPE_CHECKING:
    from keras_rl2.presets import Preset


# Suffixes of numbers of steps.
_SUFFIXES = {"k": 1_000, "m": 1_000_000}


def whole_number(text: str) -> int:
    """Reads a number of steps, episodes and the like: `100k`, `1e5`, `1.5M`.

    Args:
        text: str. The argument as typed.

    Returns:
        int: the number, 0 or more.

    Raises:
        argparse.ArgumentTypeError: If it is anything else.

    Example:

    >>> whole_number("1e5"), whole_number("100_000"), whole_number("100k")
    (100000, 100000, 100000)
    """
    factor = _SUFFIXES.get(text[-1:].lower(), 1)
    try:
        number = float(text if factor == 1 else text[:-1]) * factor
        # 1.1 * 1000 is not exactly 1100.
        nearest = round(number)
        if nearest < 0 or not math.isclose(number, nearest, rel_tol=1e-15):
            raise ValueError
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            "expected a whole number, e.g. 20000, 20k or 1e6, received "
            f"{text!r}"
        ) from None
    return nearest


def count(text: str) -> int:
    """Reads a number of at least 1; see `whole_number`."""
    number = whole_number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(
            f"expected a number of at least 1, received {text!r}"
        )
    return number


def add_env_kwargs(parser: argparse.ArgumentParser, default: str = "") -> None:
    """Adds the option for the arguments of an environment.

    Args:
        parser: argparse.ArgumentParser. The parser of a command.
        default: str. The default, for the help. Defaults
            to `""`.
    """
    parser.add_argument(
        "--env-kwargs",
        type=setting,
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help=f"arguments of the environment, see gymnasium.make{default}",
    )


def setting(text: str) -> tuple[str, Any]:
    """Reads `key=value`; the value is JSON where possible, else a string.

    Args:
        text: str. The argument as typed.

    Returns:
        tuple: the dotted key and its value.

    Raises:
        argparse.ArgumentTypeError: If there is no key or no `=`.

    Example:

    >>> setting("agent.gamma=0.9"), setting("networks.activation=relu")
    (('agent.gamma', 0.9), ('networks.activation', 'relu'))
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(
            f"expected KEY=VALUE, e.g. agent.gamma=0.9, received {text!r}"
        )
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


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
