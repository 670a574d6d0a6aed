"""Which run a checkpoint is of, and how its agent is made again."""

import json
from collections.abc import Mapping
from typing import Any

import keras


def identity(agent: Any, rounds: Any) -> dict[str, Any]:
    """Returns what makes a training another one.

    Args:
        agent: `keras_rl2.Agent`.
        rounds: `keras_rl2.data.RoundDataset`. Bound to it.

    Returns:
        dict of plain data by what it is called in messages.
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
    """Refuses the checkpoint of another training.

    Args:
        saved: dict, as of `identity`; None of a release that kept none.
        own: dict. That of the training which is to go on.

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


def model_as_json(agent: Any) -> str | None:
    """Returns what Keras makes an agent from, but for its numbers.

    Args:
        agent: `keras_rl2.Agent`, compiled.

    Returns:
        str of JSON; None where a network does not say what it is made from:
        the training goes on without, as its program makes the agent.
    """
    try:
        return json.dumps(keras.saving.serialize_keras_object(agent))
    except (TypeError, ValueError, NotImplementedError, AttributeError):
        return None
