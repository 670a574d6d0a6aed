"""`keras-rl2 record`: a video of a saved agent, or a dataset of its steps."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from keras_rl2.cli import errors
from keras_rl2.cli.argument_types import add_env_kwargs
from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import whole_number
from keras_rl2.cli.run_folder import AGENT_PATH_HELP
from keras_rl2.cli.run_folder import RunFolder

if TYPE_CHECKING:
    from keras_rl2.callbacks.recording import IdEnv
    from keras_rl2.callbacks.recording import Recording

SUMMARY = (
    "record greedy episodes of a saved agent, as .mp4 or .gif; or its steps, "
    "as a dataset to learn from"
)
# In the place of an agent.
_RANDOM = "random"
_STEPS = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "path",
        metavar="PATH",
        help=f"{AGENT_PATH_HELP}; with --dataset, also {_RANDOM}",
    )
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
    dataset = parser.add_argument_group("datasets")
    dataset.add_argument(
        "--dataset",
        metavar="FOLDER",
        help="new folder for a dataset, as Minari has it, in place of a video",
    )
    dataset.add_argument(
        "--steps", type=count, help=f"environment steps (default: {_STEPS})"
    )
    dataset.add_argument(
        "--deterministic",
        action="store_true",
        help="take the most probable actions, not a sample as in training",
    )


def run(arguments: argparse.Namespace) -> int:
    """Records, and prints where the video or the dataset is."""
    if arguments.dataset is not None:
        return _record_dataset(arguments)
    if arguments.steps is not None or arguments.deterministic:
        raise errors.CommandError(
            "--steps and --deterministic are for --dataset FOLDER: a video is "
            "of --episodes that are greedy"
        )
    from keras_rl2.callbacks.recording import WRITERS
    from keras_rl2.callbacks.recording import IdEnv
    from keras_rl2.callbacks.recording import Recording

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
    from keras_rl2.callbacks import recording
    from keras_rl2.cli import environments

    modes = environments.render_modes(env.env_id, env.env_kwargs)
    if "rgb_array" not in modes:
        raise errors.CommandError(
            f"{env.env_id} draws no pictures: expected rgb_array among its "
            f"render modes, received {', '.join(modes) or 'none'}"
        )
    from keras_rl2.cli import agent_file

    agent = agent_file.load(file)
    with environments.make(env.env_id, env.env_kwargs) as made:
        agent.bind(made.observation_space, made.action_space)
    recorded = recording.record(agent, env, asked)
    returns = ", ".join(f"{each:.1f}" for each in recorded.returns)
    print(f"{asked.path}: {recorded.frame_count} frames, return {returns}")


def _record_dataset(arguments: argparse.Namespace) -> int:
    """Records steps, and prints a description of the data set."""
    errors.require_modules("--dataset", "pip install minari[hdf5]", "minari")
    policy: Any = None
    env_id, env_kwargs = arguments.env, dict(arguments.env_kwargs)
    file = None
    if arguments.path != _RANDOM:
        folder, file = RunFolder.holding(arguments.path)
        env_id, env_kwargs = folder.environment(env_id, env_kwargs)
    elif env_id is None:
        raise errors.CommandError(
            f"{_RANDOM} plays in no environment of its own: expected --env"
        )
    from keras_rl2.cli import environments

    environments.require(env_id)
    from keras_rl2.cli import agent_file
    from keras_rl2.offline.recorder import record

    if file is not None:
        policy = agent_file.load(file)
    recorded = record(
        policy,
        env_id,
        arguments.steps or _STEPS,
        arguments.dataset,
        arguments.seed,
        deterministic=arguments.deterministic,
        env_kwargs=env_kwargs,
    )
    print(f"{arguments.dataset}: {recorded.in_words}")
    return 0
