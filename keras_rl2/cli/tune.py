"""`keras-rl2 tune`: looks for better settings than a preset's."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from keras_rl2.cli import errors
from keras_rl2.cli.argument_types import add_env_kwargs
from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import setting
from keras_rl2.cli.argument_types import whole_number
from keras_rl2.cli.asked_preset import asked_settings
from keras_rl2.cli.asked_preset import find_preset
from keras_rl2.cli.tune_folder import TuneFolder

if TYPE_CHECKING:
    from keras_rl2.cli.tuning_plan import TuningPlan
    from keras_rl2.presets import Preset
    from keras_rl2.presets import SearchSpace

SUMMARY = "look for better settings, by trials of several seeds each"
#: What gives up on trials that do worse than others did.
PRUNERS = ("median", "hyperband", "none")
_NORMALIZE = "networks.normalize_observations"
# As many as `doctor` looks at.
_RANDOM_STEPS = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "algorithm", metavar="ALGORITHM", help="ppo, sac, dqn, ..."
    )
    parser.add_argument("environment", metavar="ENV", help="id of Gymnasium")
    parser.add_argument(
        "--trials",
        type=count,
        default=50,
        metavar="N",
        help="end with N trials, those of earlier calls among them "
        "(default: 50)",
    )
    parser.add_argument(
        "--steps",
        type=count,
        help="environment steps of each seed (default: the preset's)",
    )
    parser.add_argument(
        "--seeds",
        type=count,
        default=2,
        metavar="K",
        help="train each trial with K seeds; their interquartile mean counts "
        "(default: 2)",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, help="the first (default: 0)"
    )
    parser.add_argument(
        "--pruner",
        choices=PRUNERS,
        default="median",
        help="what gives up on trials that do worse than others did by then "
        "(default: median)",
    )
    parser.add_argument(
        "--reports",
        type=count,
        default=10,
        metavar="N",
        help="evaluations of a run, by which trials are given up (default: 10)",
    )
    _add_settings(parser)
    _add_files(parser)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    """Adds what says which settings are tried."""
    parser.add_argument(
        "--preset",
        metavar="PATH_OR_NAME",
        help="what trials begin with, as of train (default: ENV's preset)",
    )
    parser.add_argument(
        "--set",
        dest="settings",
        type=setting,
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="settings of all trials, which are not searched: agent.gamma=0.9",
    )
    parser.add_argument(
        "--space",
        metavar="FILE",
        help="a search space in JSON (default: the algorithm's)",
    )
    parser.add_argument(
        "--search",
        type=setting,
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=RANGE",
        help="change the search space: 'agent.gamma=[0.9,0.99]' "
        '\'dataset.passes={"low":1,"high":20}\' agent.gae_lambda=null',
    )
    parser.add_argument(
        "--envs",
        type=count,
        metavar="N",
        help="environments stepped together (default: the preset's)",
    )
    add_env_kwargs(parser)
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be searched, and do nothing",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    """Adds what says how files are dealt with."""
    parser.add_argument(
        "--logdir",
        default="tuning",
        metavar="DIR",
        help="files go to DIR/STUDY (default: tuning)",
    )
    parser.add_argument(
        "--storage",
        metavar="URL_OR_FILE",
        help="where trials are kept: a URL of a data base, sqlite:///tuning.db "
        "say, or a file (default: DIR/STUDY/study.journal)",
    )
    parser.add_argument(
        "--study",
        metavar="NAME",
        help="tells several in one place apart (default: ALGORITHM-ENV)",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="forget the trials that there are",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the trials that are missing, and says what they found."""
    from keras_rl2.cli import environments
    from keras_rl2.presets.loading import algorithm_name

    algorithm_name(arguments.algorithm)
    environments.require(arguments.environment)
    plan = _plan(arguments)
    if arguments.dry_run:
        _print(plan)
        return 0
    errors.require_modules("tune", "pip install optuna", "optuna")
    environments.make(plan.preset.environment, plan.preset.env_kwargs).close()
    name = arguments.study or _study_name(plan)
    folder = TuneFolder(Path(arguments.logdir) / name)
    storage = arguments.storage or str(folder.journal)
    folder.refuse_other(storage)

    # Not sooner: what can be wrong without TensorFlow has been looked at.
    from keras_rl2.cli import studies

    study = studies.open_study(
        name,
        storage,
        plan,
        overwrite=arguments.overwrite,
        clear=folder.clear,
    )
    folder.claim(storage)
    from keras_rl2.cli import tuning_run

    tuning_run.tune(study, plan, folder, arguments.trials, arguments.pruner)
    return 0


def _plan(arguments: argparse.Namespace) -> "TuningPlan":
    """Returns what is to be tried, or refuses it."""
    from keras_rl2.cli.tuning_plan import TuningPlan
    from keras_rl2.cli.tuning_plan import without_long_rounds
    from keras_rl2.presets import ALGORITHMS
    from keras_rl2.presets.loading import algorithm_name

    name = algorithm_name(arguments.algorithm)
    if ALGORITHMS[name].offline:
        raise errors.CommandError(
            f"tune takes environment steps, and {name} learns from recorded "
            "data"
        )
    space = _space(name, arguments)
    preset = find_preset(name, arguments)
    if preset.updates:
        raise errors.CommandError(
            f"--preset {arguments.preset} is for recorded data"
        )
    preset = preset.with_settings(asked_settings(preset, arguments))
    space = _with_normalization(space, preset, arguments)
    if arguments.reports > preset.total_steps:
        raise errors.CommandError(
            f"--reports {arguments.reports} are more than the steps of a run, "
            f"{preset.total_steps}"
        )
    wide, space = space, without_long_rounds(space, preset, arguments.reports)
    if wide != space:
        print(
            "dataset.horizon: no rounds longer than a report, "
            f"{preset.total_steps // arguments.reports:,} steps"
        )
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    return TuningPlan(preset, space, list(seeds), arguments.reports)


def _space(name: str, arguments: argparse.Namespace) -> "SearchSpace":
    """Returns what is searched: not what is set."""
    from keras_rl2 import presets

    if arguments.space is None:
        space = presets.find_space(name)
    else:
        space = presets.read_space(arguments.space)
    if space.algorithm != name:
        raise errors.CommandError(
            f"--space {arguments.space} is one of {space.algorithm}, not of "
            f"{name}"
        )
    settings = dict(arguments.settings)
    if arguments.envs is not None:
        settings["num_envs"] = arguments.envs
    search = dict(arguments.search)
    if twice := sorted(settings.keys() & search.keys()):
        raise errors.CommandError(
            f"{', '.join(twice)}: expected either a value, by --set or --envs, "
            "or a range, by --search"
        )
    fixed = {
        key: None
        for key in space.ranges
        if key in settings or key.partition(".")[0] in settings
    }
    return space.with_ranges({**fixed, **search})


def _with_normalization(
    space: "SearchSpace", preset: "Preset", arguments: argparse.Namespace
) -> "SearchSpace":
    """Searches normalisation too, where `doctor` would ask for it."""
    from keras_rl2.cli import checks
    from keras_rl2.cli import environments
    from keras_rl2.cli import random_rollout

    said = {**dict(arguments.settings), **dict(arguments.search)}
    if arguments.space is not None or {_NORMALIZE, "networks"} & said.keys():
        return space
    with environments.make(preset.environment, preset.env_kwargs) as env:
        if not checks.check_spaces(env.observation_space, env.action_space).ok:
            # Refused later, with the words of whoever needs the space.
            return space
        rollout = random_rollout.play(env, _RANDOM_STEPS, seed=0)
        found = checks.check_observations(rollout, env.observation_space)
    wrong = [
        each for each in found if each.name == checks.SCALE and not each.ok
    ]
    if not wrong:
        return space
    print(f"{_NORMALIZE}: searched too: {wrong[0].text}")
    return space.with_ranges({_NORMALIZE: [False, True]})


def _study_name(plan: "TuningPlan") -> str:
    """Returns the name that a study has of itself."""
    import re

    preset = plan.preset
    return re.sub(r"[^\w.-]", "_", f"{preset.algorithm}-{preset.environment}")


def _print(plan: "TuningPlan") -> None:
    """Prints what would be searched."""
    import json

    print(plan.headline())
    for name, given in plan.space.ranges.items():
        if isinstance(given, list):
            shown = ", ".join(json.dumps(each) for each in given)
        else:
            log = ", by orders of magnitude" if given.get("log") else ""
            shown = f"{given['low']:g} to {given['high']:g}{log}"
        print(f"{name:<28} {shown}")
