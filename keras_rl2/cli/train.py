"""`keras-rl2 train`: from an algorithm and an environment to an agent."""

import argparse
from typing import TYPE_CHECKING

from keras_rl2.cli import errors
from keras_rl2.cli import recorded_data
from keras_rl2.cli.argument_types import DEFAULTS
from keras_rl2.cli.argument_types import add_env_kwargs
from keras_rl2.cli.argument_types import asked_settings
from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import find_preset
from keras_rl2.cli.argument_types import setting
from keras_rl2.cli.argument_types import whole_number
from keras_rl2.cli.run_folder import RunFolder

if TYPE_CHECKING:
    from keras_rl2.presets import Preset

SUMMARY = "train an agent, with the settings known to work where there are any"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "algorithm", metavar="ALGORITHM", help="ppo, sac, dqn, ..."
    )
    parser.add_argument(
        "environment",
        metavar="ENV",
        help=(
            "id of Gymnasium, e.g. CartPole-v1; module:id or module:Class for "
            "your own"
        ),
    )
    parser.add_argument(
        "--steps", type=count, help="environment steps (default: the preset's)"
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, help="default: 0"
    )
    parser.add_argument(
        "--seeds",
        type=count,
        default=1,
        metavar="N",
        help=(
            "train N agents one after another, from --seed on; what is "
            "compiled for the first serves all (default: 1)"
        ),
    )
    parser.add_argument(
        "--logdir",
        default="runs",
        metavar="DIR",
        help="files go to DIR/ALGORITHM-ENV/seed-SEED (default: runs)",
    )
    parser.add_argument(
        "--envs",
        type=count,
        metavar="N",
        help="environments stepped together (default: the preset's)",
    )
    add_env_kwargs(parser)
    _add_settings(parser)
    _add_files(parser)
    recorded_data.add_arguments(parser)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    """Adds the options for settings."""
    parser.add_argument(
        "--preset",
        metavar="PATH_OR_NAME",
        help=(
            "a preset.json, the environment of another preset, or "
            f"{DEFAULTS} for the algorithm's defaults (default: ENV's preset)"
        ),
    )
    parser.add_argument(
        "--set",
        dest="settings",
        type=setting,
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="change settings: agent.gamma=0.9 optimizer.learning_rate=1e-4",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    """Adds the options for files."""
    parser.add_argument(
        "--checkpoint",
        type=whole_number,
        default=100_000,
        metavar="STEPS",
        help=(
            "save agent.keras, and all that --resume needs, every so many "
            "steps, 0 at the end only (default: 100000)"
        ),
    )
    parser.add_argument(
        "--evaluate",
        type=whole_number,
        metavar="STEPS",
        help=(
            "play 20 greedy episodes every so many steps and keep the best "
            "agent as best.keras, 0 at the end only (default: a tenth of the "
            "steps)"
        ),
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help=(
            "go on where the folder's newest checkpoint was, as if the "
            "training had never stopped, up to the total steps"
        ),
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="begin anew in a folder that holds a training",
    )


def run(arguments: argparse.Namespace) -> int:
    """Trains one seed after another."""
    from keras_rl2.cli import environments
    from keras_rl2.presets.loading import algorithm_name

    # Before presets are looked up: an environment that does not exist has
    # none.
    algorithm_name(arguments.algorithm)
    environments.require(arguments.environment)
    preset = _preset(arguments)
    environments.make(preset.environment, preset.env_kwargs).close()
    first = arguments.seed
    folders = {
        seed: RunFolder.of(
            arguments.logdir, preset.algorithm, preset.environment, seed
        )
        for seed in range(first, first + arguments.seeds)
    }
    _check_folders(list(folders.values()), arguments)

    # Imported late, so that errors without TensorFlow are raised first.
    from keras_rl2.cli import training_run
    from keras_rl2.training.shared_programs import SharedPrograms

    with SharedPrograms().used():
        for seed, folder in folders.items():
            resumed = _is_resumed(folder, arguments)
            training_run.train(
                _resumed_preset(folder, arguments) if resumed else preset,
                folder,
                seed=seed,
                checkpoint=arguments.checkpoint,
                evaluate=arguments.evaluate,
                resume=resumed,
                data=arguments.data,
            )
    return 0


def _preset(arguments: argparse.Namespace) -> "Preset":
    """Returns the settings of the command line."""
    from keras_rl2.presets import on_recorded_data
    from keras_rl2.presets.loading import algorithm_name

    name = algorithm_name(arguments.algorithm)
    recorded_data.check(name, arguments)
    preset = find_preset(name, arguments)
    if arguments.data is not None:
        preset = on_recorded_data(preset)
    elif preset.updates:
        raise errors.CommandError(
            f"--preset {arguments.preset} is for recorded data: expected --data"
        )
    settings = asked_settings(preset, arguments)
    if arguments.updates is not None:
        settings["updates"] = arguments.updates
    return preset.with_settings(settings)


def _check_folders(
    folders: list[RunFolder], arguments: argparse.Namespace
) -> None:
    """Raises an error for overwriting a training, or resuming a missing one."""
    if arguments.resume:
        _check_resume(folders, arguments)
        return
    for folder in folders:
        if folder.holds_training and not arguments.overwrite:
            raise errors.CommandError(
                f"{folder.path} holds a training: --resume goes on with it, "
                "--overwrite begins anew, --logdir writes elsewhere"
            )


def _check_resume(
    folders: list[RunFolder], arguments: argparse.Namespace
) -> None:
    """Raises an error if --resume is impossible or has wrong options."""
    for option in ("overwrite", "preset", "settings", "envs", "env_kwargs"):
        if getattr(arguments, option):
            name = f"--{option}".replace("_", "-").replace("settings", "set")
            raise errors.CommandError(
                f"{name} does not go with --resume, which keeps the settings "
                "of preset.json; only --steps or --updates may be another"
            )
    for folder in folders:
        if _is_resumed(folder, arguments):
            # Raises an error where the training was begun with other data.
            _resumed_preset(folder, arguments)
    if not any(folder.holds_training for folder in folders):
        raise FileNotFoundError(
            f"{folders[0].agent}: no such file, nothing to resume"
        )


def _is_resumed(folder: RunFolder, arguments: argparse.Namespace) -> bool:
    """Returns whether a training is resumed."""
    return bool(arguments.resume) and folder.holds_training


def _resumed_preset(
    folder: RunFolder, arguments: argparse.Namespace
) -> "Preset":
    """Returns the settings of the training in a folder."""
    from keras_rl2 import presets

    preset = presets.read(folder.preset)
    if preset.environment != arguments.environment:
        # An environment that only a file names is not imported.
        raise errors.CommandError(
            f"{folder.preset} is of a training in {preset.environment}, not "
            f"in {arguments.environment}"
        )
    recorded_data.check_resumed(preset, folder.preset, arguments)
    asked = {"total_steps": arguments.steps, "updates": arguments.updates}
    return preset.with_settings(
        {name: value for name, value in asked.items() if value is not None}
    )
