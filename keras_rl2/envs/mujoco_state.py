"""The state of a simulation of MuJoCo."""

import sys
from typing import Any

import numpy as np

# What is computed of constraints: of as many as there are at the time.
_OF_CONSTRAINTS = ("efc_", "efm_", "iefc_", "ifrc_", "iacc")


def is_simulation(value: Any) -> bool:
    """Says whether a value is what a simulation of MuJoCo has computed.

    Args:
        value: Any.
    """
    mujoco: Any = sys.modules.get("mujoco")
    return mujoco is not None and isinstance(value, mujoco.MjData)


def read(model: Any, data: Any) -> dict[str, Any]:
    """Returns the state of a simulation.

    Args:
        model: `mujoco.MjModel`.
        data: `mujoco.MjData`.

    Returns:
        dict of arrays: what MuJoCo calls the state, and what follows from it.
        Between two steps that is of the moment before the last time that it
        went on, and environments read it: it cannot be computed anew.
    """
    mujoco: Any = sys.modules["mujoco"]
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return {"state": state, "computed": _computed(data)}


def write(model: Any, data: Any, state: Any) -> None:
    """Gives a simulation its state.

    Args:
        model: `mujoco.MjModel`.
        data: `mujoco.MjData`.
        state: dict, as returned by `read`; or an array, of earlier releases.
    """
    mujoco: Any = sys.modules["mujoco"]
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    whole = isinstance(state, dict)
    array = state["state"] if whole else state
    mujoco.mj_setState(model, data, array, kind)
    mujoco.mj_forward(model, data)
    # Computing it has warmed the solver's start up.
    mujoco.mj_setState(model, data, array, kind)
    for name, computed in _computed(data).items() if whole else ():
        before = state["computed"].get(name)
        if before is not None and before.shape == computed.shape:
            computed[...] = before


def _computed(data: Any) -> dict[str, np.ndarray]:
    """Returns the arrays of a simulation that are always there."""
    named = {
        name: getattr(data, name)
        for name in dir(data)
        if not name.startswith(("_", *_OF_CONSTRAINTS))
    }
    return {
        name: value
        for name, value in named.items()
        if isinstance(value, np.ndarray) and value.dtype == np.float64
    }
