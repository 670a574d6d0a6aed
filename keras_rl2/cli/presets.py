"""`keras-rl2 presets`: settings that are known to work."""

import argparse

from keras_rl2.cli import errors

SUMMARY = "list the settings that come with the library"
_LINE = "{:<15} {:<24} {:>12} {:>9}  {}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "environment",
        metavar="ENV",
        nargs="?",
        help="environment id (default: all)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the table."""
    from keras_rl2 import presets

    found = presets.available(arguments.environment)
    if not found:
        ids = {preset.environment for preset in presets.available()}
        raise errors.CommandError(
            f"no preset for {arguments.environment!r}, nearest: "
            f"{errors.nearest(arguments.environment, ids)}"
        )
    print(
        _LINE.format("algorithm", "environment", "steps", "updates", "laptop")
    )
    for preset in found:
        print(
            _LINE.format(
                preset.algorithm,
                preset.environment,
                f"{preset.total_steps:,}" if preset.total_steps else "-",
                # Of recorded data, given by --data.
                f"{preset.updates:,}" if preset.updates else "-",
                "yes" if preset.laptop else "no",
            )
        )
    return 0
