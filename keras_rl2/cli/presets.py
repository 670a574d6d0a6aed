"""`keras-rl2 presets`: settings that are known to work."""

import argparse

from keras_rl2 import presets
from keras_rl2.presets import Preset
from keras_rl2.presets.algorithms import NAMES
from keras_rl2.presets.preset import unknown

_LINE = "{:<15} {:<24} {:>12} {:>9}  {}"


def run(arguments: argparse.Namespace) -> None:
    """Prints the table."""
    found = _found(arguments.of)
    print(
        _LINE.format("algorithm", "environment", "steps", "updates", "laptop")
    )
    for preset in found:
        # Presets with updates are for recorded data, `--data`.
        steps, updates = (
            f"{number:,}" if number else "-"
            for number in (preset.total_steps, preset.updates)
        )
        laptop = "yes" if preset.laptop else "no"
        names = (preset.algorithm, preset.environment)
        print(_LINE.format(*names, steps, updates, laptop))


def _found(words: list[str]) -> list[Preset]:
    """Returns the presets that all words apply to."""
    found = presets.available()
    known = {preset.environment for preset in found}
    known |= {preset.algorithm for preset in found}
    for word in words:
        # An algorithm's name may be in any case, and short.
        name = NAMES.get(word.upper(), word)
        if name not in {*presets.ALGORITHMS, *known}:
            raise unknown(
                "an algorithm or environment of a preset", word, known
            )
        found = [
            preset
            for preset in found
            if name in (preset.algorithm, preset.environment)
        ]
    if not found:
        raise ValueError(f"no preset for {' '.join(words)}")
    return found
