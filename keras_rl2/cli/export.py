"""`keras-rl2 export`: the policy without the library."""

import argparse
from pathlib import Path
from typing import Any

from keras_rl2.cli import errors
from keras_rl2.cli.run_folder import AGENT_PATH_HELP
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.trees import named_leaves

SUMMARY = "write the greedy policy of a saved agent for other programs"
_ENDINGS = {"tf_saved_model": "", "onnx": ".onnx", "litert": ".tflite"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument("path", metavar="PATH", help=AGENT_PATH_HELP)
    parser.add_argument(
        "--format",
        choices=list(_ENDINGS),
        required=True,
        help="tf_saved_model is a folder, the others are files",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        help="default: policy, policy.onnx or policy.tflite beside the agent",
    )


def run(arguments: argparse.Namespace) -> int:
    """Exports the policy and prints where it is."""
    folder, file = RunFolder.holding(arguments.path)
    ending = _ENDINGS[arguments.format]
    output = Path(arguments.output or folder.path / f"policy{ending}")
    if output.suffix != ending and ending:
        raise errors.CommandError(
            f"--output: expected a name that ends in {ending} for "
            f"{arguments.format}, received {output}"
        )
    if arguments.format == "onnx":
        errors.require_modules(
            "--format onnx", "pip install tf2onnx", "tf2onnx"
        )

    from keras_rl2.cli import saved_agents

    agent = saved_agents.load(file)
    output.parent.mkdir(parents=True, exist_ok=True)
    agent.export(output, format=arguments.format)
    print(
        f"{output}: greedy policy as {arguments.format}, raw observations "
        f"{_shapes(agent.observation_spec)} in, "
        "actions out"
    )
    return 0


def _shapes(spec: Any) -> str:
    """Describes a batch of observations, each array with its path."""
    return ", ".join(
        f"{f'{path} ' if path else ''}"
        f"[{', '.join(map(str, ('batch', *one.shape)))}]"
        for path, one in named_leaves(spec)
    )
