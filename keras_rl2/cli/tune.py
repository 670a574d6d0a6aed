"""`keras-rl2 tune`: searches better settings than a preset's by Optuna."""

import argparse
import re
from typing import Any

from keras_rl2.cli import errors
from keras_rl2.cli.argument_types import add_env_kwargs
from keras_rl2.cli.argument_types import asked_settings
from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import find_preset
from keras_rl2.cli.argument_types import setting
from keras_rl2.cli.argument_types import whole_number

SUMMARY = "search better settings with Optuna, each trial with several seeds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    add = parser.add_argument
    many: dict[str, Any] = {"type": setting, "nargs": "+", "action": "extend"}
    many |= {"default": [], "metavar": "KEY=VALUE"}
    add("algorithm", metavar="ALGORITHM", help="ppo, sac, dqn, ...")
    add("environment", metavar="ENV", help="id of Gymnasium")
    add("--trials", type=count, default=50, help="in the end (default: 50)")
    add("--steps", type=count, help="of each seed (default: the preset's)")
    add("--seeds", type=count, default=2, help="of each trial (default: 2)")
    add("--seed", type=whole_number, default=0, help="first (default: 0)")
    add("--preset", metavar="PATH_OR_NAME", help="first trial, see train")
    add("--set", dest="settings", **many, help="fix settings: agent.gamma=0.9")
    add("--search", **many, help="agent.gamma=[0.9,0.99] agent.tau=null")
    add("--envs", type=count, help="stepped together (default: the preset's)")
    add_env_kwargs(parser)
    add("--storage", default="sqlite:///tuning.db", help="URL of a database")
    add("--study", help="name, and of its best preset (default: as of a run)")


def run(arguments: argparse.Namespace) -> int:
    """Runs the missing trials, and writes the best one as a preset."""
    from keras_rl2 import presets
    from keras_rl2.cli import environments
    from keras_rl2.presets.loading import algorithm_name

    name = algorithm_name(arguments.algorithm)
    environments.require(arguments.environment)
    if presets.ALGORITHMS[name].offline:
        raise errors.CommandError(f"{name} learns from recorded data")
    ranges = {**presets.ALGORITHMS[name].search, **dict(arguments.search)}
    fixed = dict(arguments.settings)
    for key in list(ranges):
        if ranges[key] is None or {key, key.partition(".")[0]} & fixed.keys():
            del ranges[key]
    space = presets.SearchSpace(name, ranges)
    preset = find_preset(name, arguments)
    preset = preset.with_settings(asked_settings(preset, arguments))
    errors.require_modules("tune", "pip install optuna", "optuna")
    seeds = [arguments.seed + index for index in range(arguments.seeds)]
    study = re.sub(r"[^\w.-]", "_", f"{name}-{preset.environment}")
    study = arguments.study or study

    # Imported late, so that errors without TensorFlow are raised first.
    from keras_rl2.cli import tuning

    tuning.tune(
        preset, space, seeds, study, arguments.storage, arguments.trials
    )
    return 0
