"""`keras-rl2 record`: a film of a saved agent."""

import argparse
import functools
import os
import sys
from pathlib import Path
from typing import Any

from keras_rl2.cli import errors
from keras_rl2.cli import tensorflow_notes
from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import whole_number
from keras_rl2.cli.run_folder import RunFolder

SUMMARY = "film greedy episodes of a saved agent, as .mp4 or .gif"
_NEEDED = {
    ".mp4": ("pip install imageio imageio-ffmpeg", "imageio", "imageio_ffmpeg"),
    ".gif": ("pip install pillow", "PIL"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "path", metavar="PATH", help="an agent.keras, or the folder it is in"
    )
    parser.add_argument(
        "--env", help="environment id (default: the one it was trained in)"
    )
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
        help="film, .mp4 or .gif (default: agent.mp4 beside the agent)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Films the episodes and prints where the film is."""
    folder, file = RunFolder.holding(arguments.path)
    output = Path(arguments.output or file.with_suffix(".mp4"))
    ending = output.suffix.lower()
    if ending not in _NEEDED:
        raise errors.CommandError(
            f"--output: expected a name that ends in .mp4 or .gif, received "
            f"{output}"
        )
    errors.require_modules(f"a film as {ending}", *_NEEDED[ending])
    env = _make(folder.environment(arguments.env))
    try:
        _film(env, file, output, arguments)
    finally:
        env.close()
    return 0


def _make(env_id: str) -> Any:
    """Makes an environment that draws where there is no screen."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    if sys.platform == "linux" and "DISPLAY" not in os.environ:
        os.environ.setdefault("MUJOCO_GL", "egl")

    from keras_rl2.cli import environments

    environments.require(env_id)
    modes = environments.render_modes(env_id)
    if "rgb_array" not in modes:
        raise errors.CommandError(
            f"{env_id} draws no pictures: expected rgb_array among its "
            f"render modes, received {', '.join(modes) or 'none'}"
        )
    return environments.make(env_id, render_mode="rgb_array")


def _film(
    env: Any, file: Path, output: Path, arguments: argparse.Namespace
) -> None:
    """Plays, writes the frames as they come, and prints one line."""
    tensorflow_notes.import_tensorflow()
    from keras_rl2 import films
    from keras_rl2.cli import saved_agents

    agent = saved_agents.load(file)
    agent.bind(env.observation_space, env.action_space)
    output.parent.mkdir(parents=True, exist_ok=True)
    play = films.Play(
        env,
        functools.partial(agent.act, deterministic=True),
        arguments.episodes,
        arguments.seed,
        arguments.max_steps,
    )
    films.write(output, play.frames(), env.metadata.get("render_fps", 30))
    returns = ", ".join(f"{each:.1f}" for each in play.returns)
    print(f"{output}: {play.frame_count} frames, return {returns}")
