"""Errors of commands, in one line."""

import difflib
import importlib.util
import sys
from collections.abc import Iterable


class CommandError(ValueError):
    """An error that the user of a command can correct."""


def is_expected(error: Exception) -> bool:
    """Returns whether the user can correct an error, which is not a bug then.

    Args:
        error: Exception. Raised by a command.

    Returns:
        bool: whether its message is enough, without a traceback.
    """
    known = ValueError | OSError | MemoryError | FloatingPointError
    if isinstance(error, known):
        return True
    # Where Gymnasium is not imported, none of its errors was raised.
    gymnasium = sys.modules.get("gymnasium")
    return gymnasium is not None and isinstance(error, gymnasium.error.Error)


def in_one_line(error: Exception) -> str:
    r"""Returns the message of an error without line breaks.

    Args:
        error: Exception. Raised by a command.

    Returns:
        str: one line, with the notes of the error; the file comes first if a
        file is at fault.

    Example:

    >>> in_one_line(ValueError("Expected a number.\n  Received: x"))
    'Expected a number. Received: x'
    >>> in_one_line(FileNotFoundError(2, "No such file", "agent.keras"))
    'agent.keras: No such file'
    """
    text = " ".join([str(error), *getattr(error, "__notes__", ())])
    if isinstance(error, OSError) and error.filename and error.strerror:
        text = f"{error.filename}: {error.strerror}"
    return " ".join(text.split()) or type(error).__name__


def nearest(name: str, choices: Iterable[str]) -> str:
    """Returns the choices most like a name, for a message.

    Args:
        name: str. The name as typed.
        choices: Iterable of str. The existing names.

    Returns:
        str: up to three choices with commas, the best first; all of them,
        sorted, if none is similar.

    Example:

    >>> nearest("cartpol-v1", ["CartPole-v0", "CartPole-v1", "Ant-v5"])
    'CartPole-v1, CartPole-v0'
    >>> nearest("zzz", ["b", "a"])
    'a, b'
    """
    by_lower = {choice.lower(): choice for choice in sorted(choices)}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3)
    return ", ".join([by_lower[each] for each in close] or by_lower.values())


def require_modules(feature: str, command: str, *modules: str) -> None:
    """Raises an error if a feature needs a missing package.

    Args:
        feature: str. The feature, the beginning of the message.
        command: str. The command that installs the packages.
        *modules: str. The modules that will be imported.

    Raises:
        CommandError: If a module is missing.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise CommandError(f"{feature} needs {module}: {command}")
