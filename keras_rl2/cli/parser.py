"""The parser of the command line: all options of all commands.

It imports the standard library only, so that `--help` is fast.
"""

import argparse
import importlib.util
import json
import math
from typing import Any
from typing import NoReturn

from keras_rl2.export import formats
from keras_rl2.version import __version__

#: The name of an algorithm's own settings in `--preset`.
DEFAULTS = "default"
# Suffixes of numbers of steps.
_SUFFIXES = {"k": 1_000, "m": 1_000_000}
_AGENT = (
    "a .keras file, or the folder of a training: its best.keras, or its "
    "agent.keras where there is no best one"
)


def whole_number(text: str) -> int:
    """Reads a number of steps, episodes and the like: `100k`, `1e5`, `1.5M`.

    Args:
        text: str. The argument as typed.

    Returns:
        int: the number, 0 or more.

    Raises:
        argparse.ArgumentTypeError: If it is anything else.

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

    Args:
        text: str. The argument as typed.

    Returns:
        tuple: the dotted key and its value.

    Raises:
        argparse.ArgumentTypeError: If there is no key or no `=`.

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
    """Reports wrong arguments in one line."""

    def error(self, message: str) -> NoReturn:
        """Raises instead of printing the usage and leaving."""
        raise ValueError(f"{message} ({self.prog} --help)")


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
    version = f"keras-rl2 {__version__}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True
    )
    for name, (summary, add_arguments) in _COMMANDS.items():
        one = commands.add_parser(
            name, parents=[common], help=summary, description=summary
        )
        add_arguments(one)
    return parser


def _train(parser: Parser) -> None:
    """Adds the arguments of `train`."""
    add = parser.add_argument
    _add_training(parser)
    add(
        "--seeds",
        type=count,
        default=1,
        metavar="N",
        help="train N agents one after another, from --seed on; what is "
        "compiled for the first serves all (default: 1)",
    )
    add(
        "--logdir",
        default="runs",
        metavar="DIR",
        help="files go to DIR/ALGORITHM-ENV/seed-SEED (default: runs)",
    )
    add(
        "--checkpoint",
        type=whole_number,
        default=100_000,
        metavar="STEPS",
        help="save agent.keras, and all that --resume needs, every so many "
        "steps, 0 at the end only (default: 100000)",
    )
    add(
        "--evaluate",
        type=whole_number,
        metavar="STEPS",
        help="play 20 greedy episodes every so many steps and keep the best "
        "agent as best.keras, 0 at the end only (default: a tenth of the "
        "steps)",
    )
    add(
        "--resume",
        action="store_true",
        help="go on where the folder's newest checkpoint was, as if the "
        "training had never stopped, up to the total steps",
    )
    add(
        "--overwrite",
        action="store_true",
        help="begin anew in a folder that holds a training",
    )
    group = parser.add_argument_group(
        "recorded data",
        "cql, iql, td3bc and bc learn from it, and dqn, sac, td3 and ddpg can. "
        "No environment steps are taken: --checkpoint and --evaluate count "
        "updates then.",
    )
    group.add_argument(
        "--data",
        metavar="FOLDER",
        help="data of `keras-rl2 record --dataset` or Minari, a folder of "
        ".npy files, or an .npz file",
    )
    group.add_argument(
        "--updates",
        type=count,
        metavar="N",
        help="updates, in place of --steps (default: the preset's)",
    )


def _tune(parser: Parser) -> None:
    """Adds the arguments of `tune`."""
    add = parser.add_argument
    _add_training(parser)
    _add_settings(parser, "--search", "agent.gamma=[0.9,0.99] agent.tau=null")
    add("--seeds", type=count, default=2, help="of each trial (default: 2)")
    add("--trials", type=count, default=50, help="in the end (default: 50)")
    add("--storage", default="sqlite:///tuning.db", help="URL of a database")
    add("--study", help="name, and of its best preset (default: as of a run)")


def _evaluate(parser: Parser) -> None:
    """Adds the arguments of `evaluate`."""
    _add_playing(parser, episodes=20)
    parser.add_argument(
        "--stochastic",
        action="store_true",
        help="sample actions instead of taking the most probable ones",
    )


def _record(parser: Parser) -> None:
    """Adds the arguments of `record`."""
    _add_playing(parser, episodes=1, path="; with --dataset, also random")
    parser.add_argument(
        "--max-steps",
        type=count,
        default=5000,
        help="where an episode is cut off that does not end (default: 5000)",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="video, .mp4 or .gif (default: an .mp4 beside the agent)",
    )
    dataset = parser.add_argument_group("datasets")
    dataset.add_argument(
        "--dataset",
        metavar="FOLDER",
        help="new folder for a dataset, as Minari has it, in place of a video",
    )
    dataset.add_argument(
        "--steps", type=count, help="environment steps (default: 10000)"
    )
    dataset.add_argument(
        "--deterministic",
        action="store_true",
        help="take the most probable actions, not a sample as in training",
    )


def _plot(parser: Parser) -> None:
    """Adds the arguments of `plot`."""
    add = parser.add_argument
    what = "folders with progress.csv files, at any depth"
    add("runs", metavar="RUNS", nargs="+", help=what)
    output = "learning_curves.png"
    what = f"picture; png, svg or pdf (default: {output})"
    add("--output", metavar="FILE", default=output, help=what)
    add("--dpi", type=count, default=120, help="dots per inch (default: 120)")


def _export(parser: Parser) -> None:
    """Adds the arguments of `export`."""
    add = parser.add_argument
    _add_playing(parser, episodes=20)
    add(
        "--format",
        choices=list(formats.ENDINGS),
        help="tf_saved_model is a folder, the others are files",
    )
    add(
        "--output",
        metavar="FILE",
        help="default: policy, policy.onnx or policy.tflite beside the agent",
    )
    add(
        "--stochastic",
        action="store_true",
        help="sample actions, with noise as an input, instead of taking the "
        "most probable ones",
    )
    add(
        "--quantize",
        choices=formats.QUANTIZATIONS,
        help="with litert: weights in 16 bits, or all in 8, with ranges of "
        "episodes, half of them random",
    )
    add(
        "--batch-size",
        type=count,
        help="observations of each call; 1 for microcontrollers and browsers "
        "(default: any number)",
    )
    add(
        "--check",
        action="store_true",
        help="play the exported file against the agent, and write it if it "
        "acts alike",
    )
    add(
        "--check-file",
        metavar="FILE",
        help="play an existing file against the agent; write nothing",
    )


def _presets(parser: Parser) -> None:
    """Adds the arguments of `presets`."""
    parser.add_argument(
        "of",
        metavar="ALGORITHM_OR_ENV",
        nargs="*",
        help="an algorithm, an environment id, or both (default: all)",
    )


def _doctor(parser: Parser) -> None:
    """Adds the arguments of `doctor`."""
    add = parser.add_argument
    what = "environment id, module:id, or module:Class"
    add("environment", metavar="ENV", help=what)
    what = "random steps to look at (default: 1000)"
    add("--steps", type=count, default=1000, help=what)
    add("--seed", type=whole_number, default=0, help="default: 0")
    _add_settings(parser, "--env-kwargs", "arguments, see gymnasium.make")


def _add_training(parser: Parser) -> None:
    """Adds the arguments of commands that train with a preset."""
    add = parser.add_argument
    add("algorithm", metavar="ALGORITHM", help="ppo, sac, dqn, ...")
    add(
        "environment",
        metavar="ENV",
        help="id of Gymnasium, e.g. CartPole-v1; module:id or module:Class for "
        "your own",
    )
    add("--steps", type=count, help="of a training (default: the preset's)")
    add("--seed", type=whole_number, default=0, help="default: 0")
    envs = "environments stepped together (default: the preset's)"
    add("--envs", type=count, metavar="N", help=envs)
    _add_settings(parser, "--env-kwargs", "arguments, see gymnasium.make")
    add(
        "--preset",
        metavar="PATH_OR_NAME",
        help="a preset.json, the environment of another preset, or "
        f"{DEFAULTS} for the algorithm's defaults (default: ENV's preset)",
    )
    what = "change settings: agent.gamma=0.9 optimizer.learning_rate=1e-4"
    _add_settings(parser, "--set", what, dest="settings")


def _add_playing(parser: Parser, episodes: int, path: str = "") -> None:
    """Adds the arguments of commands that play with a saved agent."""
    add = parser.add_argument
    add("path", metavar="PATH", help=_AGENT + path)
    add("--env", help="environment id (default: the one it was trained in)")
    what = "arguments, on top of those it was trained with"
    _add_settings(parser, "--env-kwargs", what)
    what = f"episodes to play (default: {episodes})"
    add("--episodes", type=count, default=episodes, help=what)
    add("--seed", type=whole_number, default=0, help="default: 0")


def _add_settings(
    parser: Parser, option: str, what: str, dest: str | None = None
) -> None:
    """Adds an option that takes settings, and may be repeated."""
    parser.add_argument(
        option,
        dest=dest,
        type=setting,
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help=what,
    )


def require_module(name: str, command: str) -> None:
    """Raises an error if a package is missing.

    Args:
        name: str. The module that will be imported.
        command: str. The command that installs it.

    Raises:
        ModuleNotFoundError: If there is no such module.
    """
    if importlib.util.find_spec(name) is None:
        raise ModuleNotFoundError(f"{name} is needed: {command}")


_COMMANDS = {
    "train": (
        "train an agent, with the settings known to work where there are any",
        _train,
    ),
    "tune": (
        "search better settings with Optuna, each trial with several seeds",
        _tune,
    ),
    "evaluate": (
        "play episodes with a saved agent and print their mean return",
        _evaluate,
    ),
    "record": (
        "record greedy episodes of a saved agent, as .mp4 or .gif; or its "
        "steps, as a dataset to learn from",
        _record,
    ),
    "plot": (
        "draw learning curves: mean over seeds, and how sure it is",
        _plot,
    ),
    "export": ("write the policy of a saved agent for other programs", _export),
    "presets": ("list the settings that come with the library", _presets),
    "doctor": (
        "check an environment: spaces, scales, seeds, ends of episodes",
        _doctor,
    ),
}
