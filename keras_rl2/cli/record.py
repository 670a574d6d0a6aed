"""`keras-rl2 record`: a video of a saved agent."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from keras_rl2.cli import errors
from keras_rl2.cli import tensorflow_notes
from keras_rl2.cli.argument_types import add_env_kwargs
from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import whole_number
from keras_rl2.cli.run_folder import AGENT_PATH_HELP
from keras_rl2.cli.run_folder import RunFolder

if TYPE_CHECKING:
    from keras_rl2.recording import IdEnv
    from keras_rl2.recording import Recording

SUMMARY = "record greedy episodes of a saved agent, as .mp4 or .gif"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument("path", metavar="PATH", help=AGENT_PATH_HELP)
    parser.add_argument(
        "--env", help="environment id (default: the one it was trained in)"
    )
    add_env_kwargs(parser, ", on top of those it was trained with")
    parser.add_argument("--episodes", type=count, default=1, help="default: 1")
    parser.add_argument(
        "--seed", type=whole_number, default=0, help="default: 0"
    )
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


def run(arguments: argparse.Namespace) -> int:
    """Records the episodes and prints where the video is."""
    from keras_rl2.recording import IdEnv
    from keras_rl2.recording import Recording
    from keras_rl2.video import WRITERS

    folder, file = RunFolder.holding(arguments.path)
    output = Path(arguments.output or file.with_suffix(".mp4"))
    ending = output.suffix.lower()
    if ending not in WRITERS:
        raise errors.CommandError(
            f"--output: expected a name that ends in .mp4 or .gif, received "
            f"{output}"
        )
    packages, modules = WRITERS[ending]
    errors.require_modules(
        f"a video as {ending}", f"pip install {packages}", *modules
    )
    env_id, env_kwargs = folder.environment(
        arguments.env, dict(arguments.env_kwargs)
    )
    _record(
        file,
        IdEnv(env_id, env_kwargs),
        Recording(
            output, arguments.episodes, arguments.seed, arguments.max_steps
        ),
    )
    return 0


def _record(file: Path, env: "IdEnv", asked: "Recording") -> None:
    """Checks the environment, plays, and prints one line."""
    from keras_rl2 import recording
    from keras_rl2.cli import environments

    modes = environments.render_modes(env.env_id, env.env_kwargs)
    if "rgb_array" not in modes:
        raise errors.CommandError(
            f"{env.env_id} draws no pictures: expected rgb_array among its "
            f"render modes, received {', '.join(modes) or 'none'}"
        )
    tensorflow_notes.import_tensorflow()
    from keras_rl2.cli import saved_agents

    agent = saved_agents.load(file)
    with environments.make(env.env_id, env.env_kwargs) as made:
        agent.bind(made.observation_space, made.action_space)
    recorded = recording.record(agent, env, asked)
    returns = ", ".join(f"{each:.1f}" for each in recorded.returns)
    print(f"{asked.path}: {recorded.frame_count} frames, return {returns}")
