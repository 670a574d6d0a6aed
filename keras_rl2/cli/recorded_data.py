"""Options of `keras-rl2 train` for learning from recorded data."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from keras_rl2.cli import errors
from keras_rl2.cli.argument_types import count

if TYPE_CHECKING:
    from keras_rl2.presets import Preset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options to the parser of the command."""
    group = parser.add_argument_group(
        "recorded data",
        "cql, iql, td3bc and bc learn from it, and dqn, sac, td3 and ddpg can. "
        "No environment steps are taken: --checkpoint and --evaluate count "
        "updates then.",
    )
    group.add_argument(
        "--data",
        metavar="FOLDER",
        help=(
            "data of `keras-rl2 record --dataset` or Minari, a folder of "
            ".npy files, or an .npz file"
        ),
    )
    group.add_argument(
        "--updates",
        type=count,
        metavar="N",
        help="updates, in place of --steps (default: the preset's)",
    )


def check(name: str, arguments: argparse.Namespace) -> None:
    """Raises an error for data without a learner, and options without data.

    Args:
        name: str. The algorithm's class name.
        arguments: argparse.Namespace. The arguments of `train`.

    Raises:
        CommandError: If options are missing or do not fit each other.
    """
    from keras_rl2.presets import ALGORITHMS

    if arguments.data is None:
        if ALGORITHMS[name].offline:
            raise errors.CommandError(
                f"{name} learns from recorded data: expected --data FOLDER, as "
                "`keras-rl2 record --dataset FOLDER` writes it"
            )
        if arguments.updates is not None:
            raise errors.CommandError(
                "--updates is for --data FOLDER: without, --steps sets how "
                "long a training is"
            )
        return
    if ALGORITHMS[name].on_policy:
        able = [key for key, each in ALGORITHMS.items() if not each.on_policy]
        raise errors.CommandError(
            f"{name} does not learn from --data, only from what its present "
            f"policy does; expected one of {', '.join(able)}"
        )
    for option, advice in (("steps", "--updates"), ("envs", "nothing")):
        if getattr(arguments, option) is not None:
            raise errors.CommandError(
                f"--{option} does not go with --data, with which no "
                f"environment steps are taken: expected {advice} instead"
            )
    if not Path(arguments.data).exists():
        raise FileNotFoundError(f"{arguments.data}: no such file or folder")


def check_resumed(
    preset: "Preset", file: Path, arguments: argparse.Namespace
) -> None:
    """Raises an error for resuming from data with steps, or the reverse.

    Args:
        preset: `Preset`. The settings that the training was begun with.
        file: Path. The file of these settings.
        arguments: argparse.Namespace. The arguments of `train`.

    Raises:
        CommandError: If the training was begun with other data.
    """
    if preset.updates and arguments.data is None:
        raise errors.CommandError(
            f"{file} is of a training on recorded data: expected --data FOLDER "
            "with --resume, too"
        )
    if not preset.updates and arguments.data is not None:
        raise errors.CommandError(
            f"{file} is of a training that took its own steps: --data does "
            "not go with its --resume"
        )
