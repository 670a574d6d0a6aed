"""`keras-rl2 train`: from an algorithm and an environment to an agent."""

import argparse
from pathlib import Path
from typing import Any

import gymnasium

from keras_rl2 import presets
from keras_rl2.basics.arguments import present
from keras_rl2.cli.parser import DEFAULTS
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.cli.run_folder import require_path
from keras_rl2.cli.run_folder import run_name
from keras_rl2.envs import make_env
from keras_rl2.envs.games import is_game
from keras_rl2.envs.making import find_spec
from keras_rl2.presets import Preset
from keras_rl2.presets.algorithms import algorithm_name


def run(arguments: argparse.Namespace) -> None:
    """Trains one seed after another."""
    preset = _preset(arguments)
    env_id, env_kwargs = preset.environment, preset.env_kwargs
    make_env(env_id, env_kwargs=env_kwargs).close()
    first, last = arguments.seed, arguments.seed + arguments.seeds
    logdir = Path(arguments.logdir, run_name(preset.algorithm, env_id))
    runs = {
        seed: RunFolder(logdir / f"seed-{seed}") for seed in range(first, last)
    }
    resumed = _resumed(list(runs.values()), arguments)

    # TensorFlow takes seconds: errors that do not need it come first.
    from keras_rl2.cli import training_run
    from keras_rl2.training.shared_programs import SharedPrograms

    with SharedPrograms().used():
        for seed, folder in runs.items():
            training_run.train(
                resumed.get(folder, preset),
                folder,
                seed,
                folder in resumed,
                arguments,
            )


def find_preset(name: str, arguments: argparse.Namespace) -> Preset:
    """Finds a preset by file or name; prints a line if there is none."""
    source, env_id = arguments.preset, arguments.environment
    if find_spec(env_id) is None and not is_game(env_id):
        # Raises an error that names the nearest ids.
        gymnasium.spec(env_id)
    if source is None:
        algorithms = [each.algorithm for each in presets.available(env_id)]
        if name not in algorithms:
            print(f"no preset of {name} for {env_id}: the algorithm's defaults")
            source = DEFAULTS
    if source == DEFAULTS:
        return presets.default(name, env_id)
    source = source or env_id
    if not source.endswith(".json") and not Path(source).is_file():
        return presets.find(name, source)
    preset = presets.read(source)
    if preset.algorithm != name:
        raise ValueError(
            f"--preset {source} is one of {preset.algorithm}, not of {name}"
        )
    return preset


def asked_settings(
    preset: Preset, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Returns the settings that options change in a preset."""
    # The dedicated options take precedence over --set.
    settings = dict(arguments.set)
    settings["environment"] = arguments.environment
    if preset.environment != arguments.environment:
        # Arguments of the preset's environment may not exist in this one.
        settings.setdefault("env_kwargs", {})
    if arguments.env_kwargs:
        settings["env_kwargs"] = settings.get(
            "env_kwargs", preset.env_kwargs
        ) | dict(arguments.env_kwargs)
    if arguments.envs is not None:
        settings["num_envs"] = arguments.envs
    if arguments.steps is not None:
        settings["total_steps"] = arguments.steps
    return settings


def _preset(arguments: argparse.Namespace) -> Preset:
    """Returns the settings of the command line."""
    name = algorithm_name(arguments.algorithm)
    if arguments.data is None and presets.ALGORITHMS[name].offline:
        raise ValueError(
            f"{name} learns from recorded data: expected --data FOLDER, as "
            "`keras-rl2 record --dataset FOLDER` writes it"
        )
    for option in ("steps", "envs"):
        if arguments.data and getattr(arguments, option) is not None:
            raise ValueError(
                f"--{option} does not go with --data, with which no "
                "environment steps are taken; --updates sets the length"
            )
    preset = find_preset(name, arguments)
    if arguments.data:
        require_path(arguments.data)
        preset = presets.on_recorded_data(preset)
    elif preset.updates or arguments.updates:
        raise ValueError("--updates, or a preset of them, needs --data FOLDER")
    settings = asked_settings(preset, arguments)
    if arguments.updates is not None:
        settings["updates"] = arguments.updates
    return preset.with_settings(settings)


def _resumed(
    folders: list[RunFolder], arguments: argparse.Namespace
) -> dict[RunFolder, Preset]:
    """Returns the settings of trainings that are resumed, by their folders."""
    if not arguments.resume:
        begun = [f for f in folders if f.agent.is_file() or f.holds_checkpoint]
        if begun and not arguments.overwrite:
            raise ValueError(
                f"{begun[0].path} holds a training: --resume continues it, "
                "--overwrite starts it again, --logdir writes elsewhere"
            )
        return {}
    for option in ("overwrite", "preset", "set", "envs", "env_kwargs"):
        if getattr(arguments, option):
            raise ValueError(
                f"--{option.replace('_', '-')} does not go with --resume, "
                "which keeps the settings of preset.json; only --steps or "
                "--updates may be another"
            )
    begun = [folder for folder in folders if folder.holds_checkpoint]
    if not begun:
        raise FileNotFoundError(
            f"{folders[0].checkpoints}: no checkpoint to resume from"
        )
    return {folder: _resumed_preset(folder, arguments) for folder in begun}


def _resumed_preset(folder: RunFolder, arguments: argparse.Namespace) -> Preset:
    """Returns the settings of the training in a folder."""
    preset = presets.read(folder.preset)
    if bool(preset.updates) != (arguments.data is not None):
        begun = "on recorded data" if preset.updates else "that took steps"
        raise ValueError(
            f"{folder.preset} is of a training {begun}: expected --data FOLDER "
            "for recorded data, and for no other"
        )
    lengths = {"total_steps": arguments.steps, "updates": arguments.updates}
    return preset.with_settings(present(**lengths))
