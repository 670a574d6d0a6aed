"""Parsing of the command line, and the way from a command to its file."""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from keras_rl2.cli import doctor
from keras_rl2.cli import errors
from keras_rl2.cli import evaluate
from keras_rl2.cli import export
from keras_rl2.cli import plot
from keras_rl2.cli import presets
from keras_rl2.cli import record
from keras_rl2.cli import train
from keras_rl2.cli import tune
from keras_rl2.version import __version__

NAME = "keras-rl2"
_COMMANDS = {
    "train": train,
    "tune": tune,
    "evaluate": evaluate,
    "record": record,
    "plot": plot,
    "export": export,
    "presets": presets,
    "doctor": doctor,
}
_INTERRUPTED = 130  # as shells have it: 128 + SIGINT
_BROKEN_PIPE = 141  # 128 + SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: Sequence of str. The words after `keras-rl2`; None for the
            arguments of the process. Defaults to `None`.

    Returns:
        int: exit code. 0 on success; 1 if a check of `doctor` failed;
        2 after an error that one line on stderr explains; 130 after Ctrl-C.

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
    # Before pygame is imported, or it greets on each start.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    # Before TensorFlow is imported, of which only errors are shown.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        arguments = make_parser().parse_args(argv)
        return int(arguments.run(arguments))
    except SystemExit as stop:
        # From `--help` and `--version`, and from SIGTERM in a training.
        return int(stop.code or 0)
    except KeyboardInterrupt:
        print(f"{NAME}: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # Of `keras-rl2 presets | head`. Python would flush once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except Exception as error:
        if "--debug" in argv or not errors.is_expected(error):
            raise
        print(f"{NAME}: {errors.in_one_line(error)}", file=sys.stderr)
        return 2


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands."""
    common = _Parser(add_help=False)
    common.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show the traceback of an error",
    )
    parser = _Parser(
        prog=NAME,
        parents=[common],
        description="Reinforcement learning with Keras from the command line.",
        epilog=f"{NAME} COMMAND --help lists the options of a command.",
    )
    parser.add_argument(
        "--version", action="version", version=f"{NAME} {__version__}"
    )
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", required=True
    )
    for name, command in _COMMANDS.items():
        one = commands.add_parser(
            name,
            parents=[common],
            help=command.SUMMARY,
            description=command.SUMMARY,
        )
        command.add_arguments(one)
        one.set_defaults(run=command.run)
    return parser


class _Parser(argparse.ArgumentParser):
    """Reports wrong arguments in one line."""

    def error(self, message: str) -> NoReturn:
        """Raises instead of printing the usage and leaving."""
        raise errors.CommandError(f"{message} ({self.prog} --help)")
