"""Loading a saved agent."""

import json
import os
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras

from keras_rl2.agents import Agent
from keras_rl2.agents import Team
from keras_rl2.basics.arguments import check_path
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.saving.archives import check_archive
from keras_rl2.saving.checkpoint_folder import CheckpointFolder
from keras_rl2.training.agent_state import state_variables

_LONGEST_REASON = 300
_STATE = ("variables", "paths")


@refusing_unknown
def load(
    path: str | os.PathLike[str],
    custom_objects: Mapping[str, Any] | None = None,
) -> Any:
    """Loads a saved agent, or a team.

    It calls `keras.saving.load_model` with `safe_mode=True`, which runs no code
    of the file, and raises an error for a file that was changed or cut off
    after it was saved. Load files that you trust: a file chooses which layers
    are made, and how large they are.

    Your own layers must be registered with
    `keras.saving.register_keras_serializable`, or passed in `custom_objects`,
    as with Keras.

    From the directory of a `keras_rl2.callbacks.Checkpoint` it loads the agent
    of the newest undamaged checkpoint: to act, to be exported, or to be
    trained otherwise. (To resume the run, run its program again.)

    Args:
        path: str or path. A `.keras` file on this machine; or a directory of
            checkpoints, or one of its files `checkpoint-....npz`.
        custom_objects: Mapping or None. Classes and functions by the names
            that the file has for them. Defaults to `None`.

    Returns:
        `keras_rl2.Agent` or `Team`, compiled as it was.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it holds no agent, or is damaged.

    Example:

    >>> import tempfile
    >>> import keras_rl2 as rl
    >>> path = os.path.join(tempfile.mkdtemp(), "agent.keras")
    >>> rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0).save(path)
    >>> type(rl.load(path)).__name__
    'PPO'
    """
    check_path(path=path)
    if not os.path.exists(path):
        raise FileNotFoundError(2, "No such file", os.fspath(path))
    objects = dict(custom_objects or {})
    try:
        if os.path.isdir(path) or os.fspath(path).endswith(".npz"):
            agent = _of_checkpoint(Path(path), objects)
        else:
            check_archive(path)
            agent = keras.saving.load_model(
                path, custom_objects=objects, safe_mode=True
            )
        if not isinstance(agent, Agent | Team):
            raise ValueError(f"a {type(agent).__name__}, which is no agent")
    except Exception as error:
        # Its type depends on the fault of the file. Keras puts configs first,
        # and the reason last.
        text = str(error) or type(error).__name__
        reason = text.rpartition("Exception encountered: ")[2]
        raise ValueError(
            "Expected a saved agent of keras_rl2 or of an imported class. "
            f"Received: {path}: "
            f"{textwrap.shorten(reason, _LONGEST_REASON, placeholder=' ...')}"
        ) from error
    return agent


def _of_checkpoint(path: Path, custom_objects: dict[str, Any]) -> object:
    """Returns the agent of a folder of checkpoints, or of one checkpoint."""
    # The rows of a replay buffer may be damaged, or left behind.
    if path.is_dir():
        saved = CheckpointFolder(path).newest(with_rows=False)
    else:
        saved = CheckpointFolder(path.parent).read(path, with_rows=False)
    if saved is None:
        raise ValueError("a folder without a checkpoint")
    if saved.state["model"] is None:
        raise ValueError(
            f"{saved.path.name}, which has no config of its agent: a network "
            "has no `get_config`. The program that trains it resumes it"
        )
    agent = keras.saving.deserialize_keras_object(
        json.loads(saved.state["model"]),
        custom_objects=custom_objects,
        safe_mode=True,
    )
    _restore(agent, saved.state["agent"])
    return agent


def _restore(agent: object, state: dict[str, Any]) -> None:
    """Restores the state of an agent, or of the members of a team."""
    if isinstance(agent, Team):
        for name, member in agent.agents().items():
            _restore(member, state["members"][name])
    elif isinstance(agent, Agent):
        count = len(state_variables(agent))
        agent.set_state(state | {name: state[name][:count] for name in _STATE})
