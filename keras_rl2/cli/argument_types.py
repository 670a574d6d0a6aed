"""Types of command-line arguments."""

import argparse
import json
import math
from typing import Any

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
