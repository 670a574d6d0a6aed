"""The way from the command line to the file of a command."""

import gc
import importlib
import os
import sys
from collections.abc import Sequence

from keras_rl2.cli.parser import make_parser

NAME = "keras-rl2"
_INTERRUPTED = 130  # as shells have it: 128 + SIGINT
_BROKEN_PIPE = 141  # 128 + SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Example:

    >>> main(["presets", "CartPole-v1"])
    algorithm       environment       steps   updates  laptop
    ...
    0
    """
    code = _run(sys.argv[1:] if argv is None else argv)
    if code == _INTERRUPTED:
        # Keras' iterator over the epoch that was broken off is part of a
        # circle. Left to the end of the process, TensorFlow would close it
        # when Python is gone, and print that as a warning after our last word.
        gc.collect()
    return code


def _run(argv: Sequence[str]) -> int:
    """Runs one command, and turns its error into an exit code."""
    # pygame, when it is imported, greets on each start.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    # TensorFlow, when it is imported, shows errors only.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # The module of an environment may lie in the working directory, where an
    # installed command, other than `python -m`, does not look.
    if (folder := os.getcwd()) not in sys.path:
        sys.path.append(folder)
    try:
        arguments = make_parser().parse_args(argv)
        command = importlib.import_module(f"keras_rl2.cli.{arguments.command}")
        return int(command.run(arguments) or 0)
    except SystemExit as stop:
        # `--help`, `--version` and SIGTERM in a training raise it.
        return int(stop.code or 0)
    except KeyboardInterrupt:
        print(f"{NAME}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # `keras-rl2 presets | head` raises it. Python would flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except Exception as error:
        if "--debug" in argv or not is_expected(error):
            raise
        print(f"{NAME}: {in_one_line(error)}", file=sys.stderr)
        return 2


def is_expected(error: Exception) -> bool:
    """Returns whether the user can correct an error, so that it is no bug."""
    known = (
        ValueError | OSError | MemoryError | FloatingPointError | ImportError
    )
    if isinstance(error, known):
        return True
    # If Gymnasium is not imported, none of its errors was raised.
    gymnasium = sys.modules.get("gymnasium")
    return gymnasium is not None and isinstance(error, gymnasium.error.Error)


def in_one_line(error: Exception) -> str:
    r"""Returns the message of an error without line breaks.

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
