"""`keras-rl2 presets`: settings that are known to work."""

import argparse
from typing import TYPE_CHECKING

from keras_rl2.cli import errors

if TYPE_CHECKING:
    from keras_rl2.presets import Preset

SUMMARY = "list the settings that come with the library"
_LINE = "{:<15} {:<24} {:>12} {:>9}  {}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "of",
        metavar="ALGORITHM_OR_ENV",
        nargs="*",
        help="an algorithm, an environment id, or both (default: all)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the table."""
    found = _found(arguments.of)
    print(
        _LINE.format("algorithm", "environment", "steps", "updates", "laptop")
    )
    for preset in found:
        print(
            _LINE.format(
                preset.algorithm,
                preset.environment,
                f"{preset.total_steps:,}" if preset.total_steps else "-",
                # On recorded data, of --data.
                f"{preset.updates:,}" if preset.updates else "-",
                "yes" if preset.laptop else "no",
            )
        )
    return 0


def _found(words: list[str]) -> "list[Preset]":
    """Returns the presets that all words apply to."""
    from keras_rl2 import presets

    found = every = presets.available()
    for word in words:
        # A name of an algorithm comes in any case, and as `bc`.
        name = _algorithm_name(word)
        named = [each for each in every if each.algorithm == name]
        placed = [each for each in every if each.environment == word]
        if name is None and not placed:
            raise _no_preset(word, every)
        found = [each for each in found if each in (named or placed)]
    if not found:
        raise errors.CommandError(f"no preset for {' '.join(words)}")
    return found


def _algorithm_name(word: str) -> str | None:
    """Returns the name of an algorithm, or None if the word is not one."""
    from keras_rl2.presets.loading import algorithm_name

    try:
        return algorithm_name(word)
    except ValueError:
        return None


def _no_preset(word: str, every: "list[Preset]") -> errors.CommandError:
    """Makes the error for an unknown name, with the existing ones."""
    names = {preset.environment for preset in every}
    names |= {preset.algorithm for preset in every}
    return errors.CommandError(
        f"no preset for {word!r}, nearest: {errors.nearest(word, names)}"
    )
