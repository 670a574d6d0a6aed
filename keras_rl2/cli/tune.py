"""`keras-rl2 tune`: searches better settings than a preset's."""

import argparse
import json
import re
from pathlib import Path

from keras_rl2.cli import errors
from keras_rl2.cli.argument_types import add_env_kwargs
from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import setting
from keras_rl2.cli.argument_types import whole_number

SUMMARY = "search better settings with Optuna, each trial with several seeds"


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
        help="end with N trials, including those of earlier calls "
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
        choices=("median", "hyperband", "none"),
        default="median",
        help="end trials early that do worse than others did at the same steps "
        "(default: median)",
    )
    parser.add_argument(
        "--reports",
        type=count,
        default=10,
        metavar="N",
        help="evaluations of a run, by which trials are pruned (default: 10)",
    )
    _add_settings(parser)
    _add_files(parser)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the settings of trials."""
    parser.add_argument(
        "--preset",
        metavar="PATH_OR_NAME",
        help="settings that trials begin with, see train (default: ENV's "
        "preset)",
    )
    parser.add_argument(
        "--set",
        dest="settings",
        type=setting,
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="fix settings for all trials: agent.gamma=0.9",
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
        help="print the search space, and do nothing",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    """Adds the options for files."""
    parser.add_argument(
        "--logdir",
        default="tuning",
        metavar="DIR",
        help="files go to DIR/STUDY (default: tuning)",
    )
    parser.add_argument(
        "--storage",
        metavar="URL_OR_FILE",
        help="a database for the trials, e.g. sqlite:///tuning.db, or a file "
        "(default: DIR/STUDY/study.journal); optuna-dashboard shows either",
    )
    parser.add_argument(
        "--study",
        metavar="NAME",
        help="name of the study, and of its folder (default: ALGORITHM-ENV)",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="delete the study and its results first",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the missing trials."""
    from keras_rl2.cli import environments
    from keras_rl2.cli.tuning_plan import TuningPlan
    from keras_rl2.presets.loading import algorithm_name

    algorithm_name(arguments.algorithm)
    environments.require(arguments.environment)
    plan = TuningPlan.from_arguments(arguments)
    preset = plan.preset
    if arguments.dry_run:
        print(plan.headline())
        for key, given in plan.space.ranges.items():
            print(f"{key:<28} {json.dumps(given)}")
        return 0
    errors.require_modules("tune", "pip install optuna", "optuna")
    environments.make(preset.environment, preset.env_kwargs).close()
    name = arguments.study or re.sub(
        r"[^\w.-]", "_", f"{preset.algorithm}-{preset.environment}"
    )
    folder = Path(arguments.logdir) / name

    # Imported late, so that errors without TensorFlow are raised first.
    from keras_rl2.cli import tuning_run

    study = tuning_run.open_study(
        plan,
        folder,
        arguments.storage or str(folder / "study.journal"),
        overwrite=arguments.overwrite,
    )
    tuning_run.tune(study, plan, folder, arguments.trials, arguments.pruner)
    return 0
