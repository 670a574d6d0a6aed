"""The identity of a run in its checkpoints, and the config of its agent."""

import json
from collections.abc import Mapping
from typing import Any

import keras


def identity(agent: object, rounds: object) -> dict[str, Any]:
    """Returns the properties that distinguish trainings.

    Args:
        agent: `keras_rl2.Agent`.
        rounds: `keras_rl2.data.RoundDataset`, bound to the agent.

    Returns:
        dict of plain data by the names in error messages.
    """
    env = getattr(rounds, "env", None)
    return {
        "algorithm": type(agent).__name__,
        "environment": getattr(env, "name", None),
        "seed of the agent": getattr(agent, "seed", None),
        "seed of the dataset": getattr(rounds, "seed", None),
    }


def check_identity(
    saved: Mapping[str, Any] | None, own: Mapping[str, Any]
) -> None:
    """Checks that a checkpoint is of the same training.

    Args:
        saved: dict; see `identity`; None if the checkpoint has none.
        own: dict. The identity of the present training.

    Raises:
        ValueError: If they differ.

    Example:

    >>> check_identity({"seed": 0}, {"seed": 1})
    Traceback (most recent call last):
    ...
    ValueError: seed 0, where this one has 1
    """
    differing = [
        f"{name} {saved[name]!r}, where this one has {value!r}"
        for name, value in own.items()
        if saved is not None and name in saved and saved[name] != value
    ]
    if differing:
        raise ValueError("; ".join(differing))


def model_as_json(agent: object) -> str | None:
    """Returns the config of an agent, from which Keras makes it.

    Args:
        agent: `keras_rl2.Agent`, compiled.

    Returns:
        str of JSON; None if a network has no config: the training can be
        resumed without it, since its program makes the agent.
    """
    try:
        return json.dumps(keras.saving.serialize_keras_object(agent))
    except (TypeError, ValueError, NotImplementedError, AttributeError):
        return None
