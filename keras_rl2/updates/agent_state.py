"""The state of an agent, on which its later updates and actions depend."""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np


def variables_of(agent: keras.Model) -> list[keras.Variable]:
    """Returns the variables of an agent and its optimizers, each once."""
    found = [*agent.variables, *agent.optimizer.variables]
    # Metrics of an unfinished epoch.
    found += [v for metric in agent.metrics for v in metric.variables]
    return list({id(each): each for each in found}.values())


def read(agent: keras.Model) -> dict[str, Any]:
    """Returns the state of an agent, bound and compiled, as plain data."""
    variables = variables_of(agent)
    return {
        "class": type(agent).__name__,
        "env_steps": agent.env_steps,
        "skipped_in_a_row": int(agent.skipped.in_a_row.numpy()),
        "clipped_observations": agent.normalizing.outliers.count,
        "paths": [each.path for each in variables],
        "variables": [_stored(each.value.numpy()) for each in variables],
    }


def write(agent: keras.Model, state: Mapping[str, Any]) -> None:
    """Restores the state of an agent that was made as the other one."""
    variables = variables_of(agent)
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
    agent.env_steps = int(state["env_steps"])
    agent.skipped.in_a_row.assign(state["skipped_in_a_row"])
    agent.normalizing.outliers.count = int(state["clipped_observations"])


def _stored(array: np.ndarray) -> np.ndarray:
    """Returns a copy, with a dtype of NumPy itself."""
    return np.array(array, _stored_dtype(array.dtype.name))


def _stored_dtype(dtype: str) -> str:
    """Returns a dtype of NumPy that holds the values of another exactly."""
    return "float32" if dtype == "bfloat16" else dtype
