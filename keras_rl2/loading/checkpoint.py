"""The agent of a run that is saved by `Checkpoint`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from keras_rl2.agents import Agent
from keras_rl2.files.checkpoint_folder import CheckpointFolder
from keras_rl2.files.plain_files import parse_json
from keras_rl2.loading import config
from keras_rl2.loading.budget import no_more_weights_than
from keras_rl2.saving import agent_state

# State of an unfinished epoch: it comes last, and is not made by then.
_STATE = ("variables", "paths")


def load(path: Path, custom_objects: Mapping[str, Any]) -> object:
    """Makes the agent of a checkpoint, as it was.

    Args:
        path: Path. The directory of a `Checkpoint`, for its newest undamaged
            one; or one of its folders.
        custom_objects: Mapping. See `keras_rl2.load`.

    Returns:
        `keras_rl2.Agent`, compiled; or another object of the checkpoint.

    Raises:
        ValueError: If there is no checkpoint, or it has no config of its
            agent.
    """
    # The rows of a replay buffer may be damaged, or left behind.
    if (path / "manifest.json").is_file():
        saved = CheckpointFolder(path.parent).read(path, with_rows=False)
    else:
        newest = CheckpointFolder(path).newest(with_rows=False)
        if newest is None:
            raise ValueError("a folder without a checkpoint")
        saved = newest
    if saved.state.get("model") is None:
        raise ValueError(
            f"{saved.path.name}, which has no config of its agent: an "
            "earlier release wrote it, or a network has no `get_config`. The "
            "program that trains it resumes it"
        )
    made_from = parse_json(saved.state["model"].encode(), saved.path.name)
    state = saved.state["agent"]
    config.check(made_from, custom_objects)
    elements = sum(array.size for array in state["variables"])
    with no_more_weights_than(elements):
        agent = keras.saving.deserialize_keras_object(
            made_from, custom_objects=dict(custom_objects), safe_mode=True
        )
    if isinstance(agent, Agent):
        count = len(agent_state.variables_of(agent))
        agent.set_state(state | {name: state[name][:count] for name in _STATE})
    return agent
