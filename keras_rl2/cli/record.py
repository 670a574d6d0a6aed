"""`keras-rl2 record`: a video of a saved agent, or a dataset of its steps."""

import argparse
from contextlib import closing
from pathlib import Path
from typing import Any

from keras_rl2.agents.loader import load
from keras_rl2.cli.parser import require_module
from keras_rl2.cli.run_folder import RunFolder
from keras_rl2.collecting import recording
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.offline.recorder import record as record_steps

# It replaces the path of an agent.
_RANDOM = "random"
_STEPS = 10_000


def run(arguments: argparse.Namespace) -> None:
    """Records, and prints where the video or the dataset is."""
    if arguments.dataset is not None:
        _record_dataset(arguments)
    elif arguments.steps is not None or arguments.deterministic:
        raise ValueError(
            "--steps and --deterministic are for --dataset FOLDER: a video is "
            "of --episodes that are greedy"
        )
    else:
        _record_video(arguments)


def _record_video(arguments: argparse.Namespace) -> None:
    """Plays episodes, and prints one line."""
    folder, file = RunFolder.holding(arguments.path)
    output = Path(arguments.output or file.with_suffix(".mp4"))
    ending = output.suffix.lower()
    if ending not in recording.FORMATS:
        raise ValueError(
            f"--output: expected a name that ends in .mp4 or .gif, received "
            f"{output}"
        )
    recording.require(ending)
    env_id, env_kwargs = folder.environment(arguments)
    agent = load(file)
    with closing(as_vector_env(env_id, env_kwargs=env_kwargs)) as env:
        agent.bind(env.observation_space, env.action_space)
    recorded = recording.record(
        agent.policy,
        recording.maker_of_id(env_id, env_kwargs),
        recording.Recording(
            output, arguments.episodes, arguments.seed, arguments.max_steps
        ),
    )
    returns = ", ".join(f"{each:.1f}" for each in recorded.returns)
    print(f"{output}: {recorded.frame_count} frames, return {returns}")


def _record_dataset(arguments: argparse.Namespace) -> None:
    """Records steps, and prints a description of the data set."""
    require_module("minari", "pip install minari[hdf5]")
    policy: Any = None
    env_id, env_kwargs = arguments.env, dict(arguments.env_kwargs)
    if arguments.path != _RANDOM:
        folder, file = RunFolder.holding(arguments.path)
        env_id, env_kwargs = folder.environment(arguments)
        policy = load(file)
    elif env_id is None:
        raise ValueError(
            f"{_RANDOM} plays in no environment of its own: expected --env"
        )
    recorded = record_steps(
        policy,
        env_id,
        arguments.steps or _STEPS,
        arguments.dataset,
        arguments.seed,
        deterministic=arguments.deterministic,
        env_kwargs=env_kwargs,
    )
    print(f"{arguments.dataset}: {recorded.in_words}")
