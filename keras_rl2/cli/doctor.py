"""`keras-rl2 doctor`: checks that an environment can be learned from."""

import argparse

from keras_rl2.cli.argument_types import add_env_kwargs
from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import whole_number

SUMMARY = "check an environment: spaces, scales, seeds, ends of episodes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    what = "environment id, module:id, or module:Class"
    parser.add_argument("environment", metavar="ENV", help=what)
    add_env_kwargs(parser)
    steps = "random steps to look at (default: 1000)"
    parser.add_argument("--steps", type=count, default=1000, help=steps)
    seed = "default: 0"
    parser.add_argument("--seed", type=whole_number, default=0, help=seed)


def run(arguments: argparse.Namespace) -> int:
    """Prints one line for each finding; returns 1 if one is to be mended."""
    from keras_rl2.cli import checks

    is_well = True
    for name, ok, text in checks.of_environment(arguments):
        is_well &= ok
        print(f"{'ok' if ok else 'todo':5} {name:18} {text}")
    return 0 if is_well else 1
