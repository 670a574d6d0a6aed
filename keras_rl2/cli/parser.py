"""The parser of the command line: all options of all commands.

It imports the standard library only, so that `--help` is fast.
"""

import argparse
import importlib.util
import json
import math
from collections.abc import Callable
from typing import Any
from typing import NoReturn

from keras_rl2.version import __version__

# `export.policy_file` has them too, but imports NumPy.
_FORMATS = ("tf_saved_model", "onnx", "litert")
_QUANTIZATIONS = ("float16", "int8")

#: The name of an algorithm's own settings in `--preset`.
DEFAULTS = "default"
# Suffixes of numbers of steps.
_SUFFIXES = {"k": 1_000, "m": 1_000_000}
_ENV = "id of Gymnasium, e.g. CartPole-v1; module:id or module:Class"
_AGENT = (
    "a .keras file, or the folder of a training: its best.keras, or its "
    "agent.keras where there is no best one"
)


def whole_number(text: str) -> int:
    """Reads a number of steps, episodes and the like: `100k`, `1e5`, `1.5M`.

    Example:

    >>> whole_number("1e5"), whole_number("100_000"), whole_number("100k")
    (100000, 100000, 100000)
    """
    factor = _SUFFIXES.get(text[-1:].lower(), 1)
    try:
        number = float(text if factor == 1 else text[:-1]) * factor
        # 1.1 * 1000 is not exactly 1100.
        nearest = round(number)
        if nearest < 0 or not math.isclose(number, nearest, rel_tol=1e-15):
            raise ValueError
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            "expected a whole number, e.g. 20000, 20k or 1e6, received "
            f"{text!r}"
        ) from None
    return nearest


def count(text: str) -> int:
    """Reads a number of at least 1; see `whole_number`."""
    number = whole_number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(
            f"expected a number of at least 1, received {text!r}"
        )
    return number


def setting(text: str) -> tuple[str, Any]:
    """Reads `key=value`; the value is JSON where possible, else a string.

    Example:

    >>> setting("agent.gamma=0.9"), setting("networks.activation=relu")
    (('agent.gamma', 0.9), ('networks.activation', 'relu'))
    """
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(
            f"expected KEY=VALUE, e.g. agent.gamma=0.9, received {text!r}"
        )
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


class Parser(argparse.ArgumentParser):
    """Reports wrong arguments in one line, and has short ways to add some."""

    def error(self, message: str) -> NoReturn:
        """Raises instead of printing the usage and leaving."""
        raise ValueError(f"{message} ({self.prog} --help)")

    def text(self, option: str, metavar: str, what: str, **kwargs: Any) -> None:
        """Adds an option that takes one word."""
        self.add_argument(option, metavar=metavar, help=what, **kwargs)

    def number(
        self,
        option: str,
        default: int | None,
        what: str,
        least: Callable[[str], int] = count,
    ) -> None:
        """Adds an option that takes a whole number."""
        self.add_argument(
            option, type=least, default=default, metavar="N", help=what
        )

    def flag(self, option: str, what: str) -> None:
        """Adds an option that takes nothing."""
        self.add_argument(option, action="store_true", help=what)

    def settings(self, option: str, what: str) -> None:
        """Adds an option that takes settings, and may be repeated."""
        self.add_argument(
            option,
            type=setting,
            nargs="+",
            action="extend",
            default=[],
            metavar="KEY=VALUE",
            help=what,
        )


def make_parser() -> Parser:
    """Returns the parser of all commands."""
    common = Parser(add_help=False)
    common.add_argument(
        "--debug",
        action="store_true",
        default=argparse.SUPPRESS,
        help="show the traceback of an error",
    )
    parser = Parser(
        prog="keras-rl2",
        parents=[common],
        description="Reinforcement learning with Keras from the command line.",
        epilog="keras-rl2 COMMAND --help lists the options of a command.",
    )
    version = f"%(prog)s {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True
    )
    for add_arguments in _COMMANDS:
        name, summary = add_arguments.__name__[1:], add_arguments.__doc__
        command = commands.add_parser(
            name, parents=[common], help=summary, description=summary
        )
        add_arguments(command)
    return parser


def _train(parser: Parser) -> None:
    """Trains an agent, with settings known to work where there are any."""
    _add_training(parser)
    parser.number("--seeds", 1, "agents, one after another (default: 1)")
    what = "for DIR/ALGORITHM-ENV/seed-SEED (default: runs)"
    parser.text("--logdir", "DIR", what, default="runs")
    what = "steps between checkpoints; 0: at the end only (default: 100000)"
    parser.number("--checkpoint", 100_000, what, whole_number)
    what = "steps between evaluations; 0: at the end only (default: a tenth)"
    parser.number("--evaluate", None, what, whole_number)
    what = "continue from the newest checkpoint up to the total steps"
    parser.flag("--resume", what)
    parser.flag("--overwrite", "begin anew in a folder that holds a training")
    what = "recorded data to learn from: a folder of Minari, or an .npz file"
    parser.text("--data", "FOLDER", what)
    what = "with --data, in place of --steps (default: the preset's)"
    parser.number("--updates", None, what)


def _tune(parser: Parser) -> None:
    """Searches better settings with Optuna, each trial with several seeds."""
    _add_training(parser)
    parser.settings("--search", "agent.gamma=[0.9,0.99] agent.tau=null")
    parser.number("--seeds", 2, "of each trial (default: 2)")
    parser.number("--trials", 50, "of the study in all (default: 50)")
    url = "sqlite:///tuning.db"
    parser.text("--storage", "URL", "of a database", default=url)
    what = "of the study and its preset (default: ALGORITHM-ENV)"
    parser.text("--study", "NAME", what)


def _evaluate(parser: Parser) -> None:
    """Plays episodes with a saved agent, and prints their mean return."""
    _add_playing(parser, episodes=20)
    what = "sample actions instead of taking the most probable ones"
    parser.flag("--stochastic", what)


def _record(parser: Parser) -> None:
    """Records a video of a saved agent, or its steps as a dataset."""
    _add_playing(parser, episodes=1, path="; with --dataset, also random")
    what = "where an episode is cut off that does not end (default: 5000)"
    parser.number("--max-steps", 5000, what)
    what = "video, .mp4 or .gif (default: an .mp4 beside the agent)"
    parser.text("--output", "FILE", what)
    what = "new folder for a dataset, as Minari has it, in place of a video"
    parser.text("--dataset", "FOLDER", what)
    what = "environment steps of a dataset (default: 10000)"
    parser.number("--steps", None, what)
    what = "for a dataset, take the most probable actions, not a sample"
    parser.flag("--deterministic", what)


def _plot(parser: Parser) -> None:
    """Draws learning curves: the mean over seeds, and its interval."""
    what = "folders with progress.csv files, at any depth"
    parser.text("runs", "RUNS", what, nargs="+")
    output = "learning_curves.png"
    what = f"picture; png, svg or pdf (default: {output})"
    parser.text("--output", "FILE", what, default=output)
    parser.number("--dpi", 120, "dots per inch (default: 120)")


def _export(parser: Parser) -> None:
    """Writes the policy of a saved agent for other programs."""
    _add_playing(parser, episodes=20)
    parser.add_argument(
        "--format",
        required=True,
        choices=_FORMATS,
        help="tf_saved_model is a folder, the others are files",
    )
    what = "default: policy, policy.onnx or policy.tflite beside the agent"
    parser.text("--output", "FILE", what)
    what = "sample actions, with noise as an input, instead of the best ones"
    parser.flag("--stochastic", what)
    parser.add_argument(
        "--quantize",
        choices=_QUANTIZATIONS,
        help="with litert: weights in 16 bits, or all in 8",
    )
    what = "observations of each call (default: any number)"
    parser.number("--batch-size", None, what)
    what = "play the file against the agent, and write it if it acts alike"
    parser.flag("--check", what)


def _presets(parser: Parser) -> None:
    """Lists the settings that come with the library."""
    what = "an algorithm, an environment id, or both (default: all)"
    parser.text("of", "ALGORITHM_OR_ENV", what, nargs="*")


def _doctor(parser: Parser) -> None:
    """Checks an environment: spaces, scales, seeds, ends of episodes."""
    parser.text("environment", "ENV", _ENV)
    parser.number("--steps", 1000, "random steps to look at (default: 1000)")
    parser.number("--seed", 0, "default: 0", least=whole_number)
    parser.settings("--env-kwargs", "arguments, see gymnasium.make")


def _add_training(parser: Parser) -> None:
    """Adds the arguments of commands that train with a preset."""
    parser.text("algorithm", "ALGORITHM", "ppo, sac, dqn, ...")
    parser.text("environment", "ENV", _ENV)
    parser.number("--steps", None, "of a training (default: the preset's)")
    parser.number("--seed", 0, "default: 0", least=whole_number)
    what = "environments stepped together (default: the preset's)"
    parser.number("--envs", None, what)
    parser.settings("--env-kwargs", "arguments, see gymnasium.make")
    what = f"a preset.json, an ENV with a preset, or {DEFAULTS} (default: ENV)"
    parser.text("--preset", "PATH_OR_NAME", what)
    what = "change settings: agent.gamma=0.9 optimizer.learning_rate=1e-4"
    parser.settings("--set", what)


def _add_playing(parser: Parser, episodes: int, path: str = "") -> None:
    """Adds the arguments of commands that play with a saved agent."""
    parser.text("path", "PATH", _AGENT + path)
    what = "environment id (default: the one it was trained in)"
    parser.text("--env", "ENV", what)
    what = "arguments, on top of those it was trained with"
    parser.settings("--env-kwargs", what)
    what = f"episodes to play (default: {episodes})"
    parser.number("--episodes", episodes, what)
    parser.number("--seed", 0, "default: 0", least=whole_number)


def require_module(name: str, command: str) -> None:
    """Raises an error if a package is missing."""
    if importlib.util.find_spec(name) is None:
        raise ModuleNotFoundError(f"{name} is needed: {command}")


# The name of each is that of its command, and its docstring is the help.
_COMMANDS = (
    *(_train, _tune, _evaluate, _record, _plot, _export, _presets, _doctor),
)
