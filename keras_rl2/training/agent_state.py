"""The state of an agent in training, and what is saved with its weights."""

from collections.abc import MutableMapping
from typing import Any

import keras
import numpy as np

from keras_rl2.updates import skipped_updates

#: Attributes that are saved with the weights.
COUNTS = ("env_steps", "offline_updates")


def state_variables(agent: Any) -> list[keras.Variable]:
    """Variables of the agent, its optimizers and its metrics, each once."""
    found = [*agent.variables, *agent.optimizer.variables]
    # Metrics of an unfinished epoch.
    found += [v for metric in agent.metrics for v in metric.variables]
    return list({id(each): each for each in found}.values())


def get_state(agent: Any) -> dict[str, Any]:
    """Returns the whole state on which later updates and actions depend.

    Args:
        agent: `keras_rl2.Agent`.

    Returns:
        dict of plain data: the variables of networks and optimizers, the
        number of steps, and the random state of `act`.
    """
    acting = agent.policy.get_state()
    variables = state_variables(agent)
    arrays = [each.value.numpy() for each in variables]
    return {
        "class": type(agent).__name__,
        **{name: getattr(agent, name) for name in COUNTS},
        "skipped_in_a_row": int(agent.skipped.in_a_row.numpy()),
        "clipped_observations": agent.normalizing.outliers.count,
        "paths": [each.path for each in variables],
        "variables": [
            np.array(each, _stored_dtype(each.dtype.name)) for each in arrays
        ],
        "acting": acting,
    }


def set_state(agent: Any, state: dict[str, Any]) -> None:
    """Restores a state of `get_state`, in an agent made in the same way.

    Args:
        agent: `keras_rl2.Agent`.
        state: dict, as returned by `get_state`.

    Raises:
        ValueError: If it is the state of another kind of agent.
    """
    policy = agent.policy
    variables = state_variables(agent)
    given = [(a.shape, a.dtype.name) for a in state["variables"]]
    own = [(tuple(v.shape), _stored_dtype(v.dtype)) for v in variables]
    if state["class"] != type(agent).__name__ or given != own:
        raise ValueError(
            f"Expected the state of a {type(agent).__name__} with "
            f"{len(own)} variables of the same shapes. Received: that of a "
            f"{state['class']} with {len(given)}"
        )
    for variable, array in zip(variables, state["variables"], strict=True):
        variable.assign(array)
    for name in COUNTS:
        setattr(agent, name, int(state.get(name, 0)))
    agent.skipped.in_a_row.assign(state["skipped_in_a_row"])
    outliers = agent.normalizing.outliers
    outliers.count = int(state["clipped_observations"])
    policy.set_state(state["acting"])


def check_loaded(agent: Any) -> None:
    """Raises an error for loaded weights that are not finite.

    Keras reports when the first of them are loaded, not when all are, so
    the weights of a file are checked when they are used.
    """
    if agent._is_loaded:
        agent._is_loaded = False
        skipped_updates.refuse_non_finite(agent, "go on with the loaded")


def save_own_variables(agent: Any, store: MutableMapping[str, Any]) -> None:
    """Saves the counts of environment steps and the like, too."""
    keras.Model.save_own_variables(agent, store)
    for name in COUNTS:
        store[name] = np.array(getattr(agent, name), np.int64)


def load_own_variables(agent: Any, store: MutableMapping[str, Any]) -> None:
    """Loads the variables of `save_own_variables`."""
    # The store of Keras has `keys` but cannot be iterated over.
    values = {key: store[key] for key in list(store.keys())}
    for name in COUNTS:
        setattr(agent, name, int(np.array(values.pop(name, 0))))
    agent._is_loaded = True
    keras.Model.load_own_variables(agent, values)


def _stored_dtype(dtype: str) -> str:
    """Returns a dtype of NumPy that holds the values of another exactly."""
    return "float32" if dtype == "bfloat16" else dtype
