"""`keras-rl2 export`: the policy without the library."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_rl2.cli import errors
from keras_rl2.cli.argument_types import add_env_kwargs
from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import whole_number
from keras_rl2.cli.run_folder import AGENT_PATH_HELP
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.export import formats
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

if TYPE_CHECKING:
    from keras_rl2.agents import Agent
    from keras_rl2.agents import ExportCheck

SUMMARY = "write the policy of a saved agent for other programs"
# Arguments for the file to write.
_WRITING = (
    "format",
    "output",
    "quantize",
    "check",
    "stochastic",
    "batch_size",
)
# Environments that are stepped together, at most.
_MOST_ENVS = 20
# Steps of each half of what int8 finds its ranges in.
_RECORDED = 1000


class _NotAlike(Exception):
    """Raised for an exported file that does not act as its agent."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument("path", metavar="PATH", help=AGENT_PATH_HELP)
    _add_file(parser)
    _add_check(parser)


def _add_file(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the file to write."""
    parser.add_argument(
        "--format",
        choices=list(formats.ENDINGS),
        help="tf_saved_model is a folder, the others are files",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="default: policy, policy.onnx or policy.tflite beside the agent",
    )
    parser.add_argument(
        "--stochastic",
        action="store_true",
        help="sample actions, with noise as an input, instead of taking the "
        "most probable ones",
    )
    parser.add_argument(
        "--quantize",
        choices=formats.QUANTIZATIONS,
        help="with litert: weights in 16 bits, or all in 8, with ranges of "
        "episodes, half of them random",
    )
    parser.add_argument(
        "--batch-size",
        type=count,
        help="observations of each call; 1 for microcontrollers and browsers "
        "(default: any number)",
    )


def _add_check(parser: argparse.ArgumentParser) -> None:
    """Adds the options for playing a file against the agent."""
    parser.add_argument(
        "--check",
        action="store_true",
        help="play the exported file against the agent, and write it if it "
        "acts alike",
    )
    parser.add_argument(
        "--check-file",
        metavar="FILE",
        help="play an existing file against the agent; write nothing",
    )
    parser.add_argument(
        "--env",
        help="environment id for --check and int8 (default: the one it was "
        "trained in)",
    )
    add_env_kwargs(parser, ", on top of those it was trained with")
    parser.add_argument(
        "--episodes",
        type=count,
        default=20,
        help="of --check, each for the agent and for the file; default: 20",
    )
    parser.add_argument(
        "--seed", type=whole_number, default=0, help="of --check; default: 0"
    )


def run(arguments: argparse.Namespace) -> int:
    """Exports the policy and prints where it is, or checks one."""
    _check(arguments)
    folder, file = RunFolder.holding(arguments.path)
    env: tuple[str, dict[str, Any]] | None = None
    plays = arguments.check or arguments.check_file
    if plays or arguments.quantize == formats.INT8:
        from keras_rl2.cli import environments

        env = folder.environment(arguments.env, dict(arguments.env_kwargs))
        # TensorFlow takes seconds: errors that do not need it come first.
        environments.make(*env).close()
    path = Path(arguments.check_file or _output(folder, arguments))
    if arguments.check_file and not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")

    from keras_rl2.cli import agent_file

    agent = agent_file.load(file)
    if not arguments.check_file:
        return _export(agent, path, env, arguments)
    check = _played(agent, path, env, arguments)
    print(
        _described(path, check), file=sys.stdout if check.passed else sys.stderr
    )
    return 0 if check.passed else 1


def _check(arguments: argparse.Namespace) -> None:
    """Raises an error for arguments that do not fit each other."""
    if arguments.check_file:
        given = [each for each in _WRITING if getattr(arguments, each)]
        if given:
            raise errors.CommandError(
                "--check-file writes nothing: leave out "
                f"--{given[0].replace('_', '-')}"
            )
        return
    if arguments.format is None:
        raise errors.CommandError(
            f"--format is required: one of {', '.join(formats.ENDINGS)}"
        )
    if arguments.quantize and arguments.format != formats.LITERT:
        raise errors.CommandError(
            f"--quantize: expected --format litert, received {arguments.format}"
        )
    if arguments.format == formats.ONNX:
        errors.require_modules(
            "--format onnx", "pip install tf2onnx", "tf2onnx"
        )
        if arguments.check:
            errors.require_modules(
                "--check of onnx", "pip install onnxruntime", "onnxruntime"
            )


def _output(folder: RunFolder, arguments: argparse.Namespace) -> Path:
    """Returns the path to write, which must have the format's ending."""
    ending = formats.ENDINGS[arguments.format]
    output = Path(arguments.output or folder.path / f"policy{ending}")
    if output.suffix != ending and ending:
        raise errors.CommandError(
            f"--output: expected a name that ends in {ending} for "
            f"{arguments.format}, received {output}"
        )
    return output


def _export(
    agent: "Agent",
    output: Path,
    env: tuple[str, dict[str, Any]] | None,
    arguments: argparse.Namespace,
) -> int:
    """Writes the policy, if it passes the check."""
    checks: list[ExportCheck] = []

    def accept(unfinished: Path) -> None:
        checks.append(_played(agent, unfinished, env, arguments))
        if not checks[0].passed:
            raise _NotAlike

    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        agent.export(
            output,
            format=arguments.format,
            deterministic=not arguments.stochastic,
            quantize=arguments.quantize,
            representative=_representative(agent, env, arguments),
            batch_size=arguments.batch_size,
            accept=accept if arguments.check else None,
        )
    except _NotAlike:
        print(f"{_described(output, checks[0])}; not written", file=sys.stderr)
        return 1
    how = "stochastic" if arguments.stochastic else "greedy"
    kind = f", {arguments.quantize}" if arguments.quantize else ""
    taken = " and noise" if arguments.stochastic else ""
    print(
        f"{output}: {how} policy as {arguments.format}{kind}, raw observations "
        f"{_shapes(agent.observation_spec)}{taken} in, actions out"
    )
    for check in checks:
        print(_described(output, check))
    return 0


def _representative(
    agent: "Agent",
    env: tuple[str, dict[str, Any]] | None,
    arguments: argparse.Namespace,
) -> Any:
    """Records the observations in which int8 finds its ranges.

    A trained policy sees little besides its own path, and its ranges would not
    cover the way back to it: so half of the steps are random.
    """
    if arguments.quantize != formats.INT8 or env is None:
        return None
    import numpy as np

    from keras_rl2.offline.recorder import record

    seen = []
    for policy in (agent, "random"):
        played = record(policy, env[0], _RECORDED, env_kwargs=env[1])
        assert played.rows is not None
        seen.append(played.rows.observation)
    return map_leaves(lambda *each: np.concatenate(each), *seen)


def _played(
    agent: "Agent",
    path: Path,
    env: tuple[str, dict[str, Any]] | None,
    arguments: argparse.Namespace,
) -> "ExportCheck":
    """Plays a file against the agent."""
    assert env is not None
    env_id, env_kwargs = env
    return agent.check_export(
        path,
        env_id,
        episodes=arguments.episodes,
        num_envs=min(arguments.episodes, _MOST_ENVS),
        seed=arguments.seed,
        env_kwargs=env_kwargs,
    )


def _described(path: Path, check: "ExportCheck") -> str:
    """Describes the results of a check in words."""
    from gymnasium.spaces import Box

    from keras_rl2.spaces.space_configs import space_from_config
    from keras_rl2.spaces.supported import space_tree

    verdict = "acts as the agent" if check.passed else "FAILED"
    space = space_from_config(check.manifest["action_space"])
    boxes = [isinstance(each, Box) for each in leaves(space_tree(space))]
    found = []
    if any(boxes):
        found.append(f"numbers differ by up to {check.difference:.2g}")
    if not all(boxes):
        found.append(f"{check.disagreements:.2%} of choices differ")
    return (
        f"{path}: {verdict}: on {check.observations:,} observations "
        f"{' and '.join(found)}; return {check.file_episode_return:.1f}, the "
        f"agent's {check.episode_return:.1f}"
    )


def _shapes(spec: Tree[ArraySpec]) -> str:
    """Describes a batch of observations, each array with its path."""
    return ", ".join(
        f"{f'{path} ' if path else ''}"
        f"[{', '.join(map(str, ('batch', *one.shape)))}]"
        for path, one in named_leaves(spec)
    )
