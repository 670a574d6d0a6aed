"""The state of environments, where they can be copied.

Gymnasium has no interface for it. An environment has methods of its own,
`get_state()` and `set_state(state)`; or all that its future depends on lies in
attributes that are plain data, or MuJoCo's, as it does in Gymnasium's own
simulations but those of Box2D. Whether it does is found out by trying.
"""

import copy
import logging
import sys
from typing import TYPE_CHECKING
from typing import Any
from typing import Protocol
from typing import runtime_checkable

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from keras_rl2 import plain_data

if TYPE_CHECKING:
    from keras_rl2.envs.vector_env import VectorEnvAdapter

logger = logging.getLogger(__name__)

# Steps that a copy takes to see whether its state makes it repeat itself.
_STEPS_COMPARED = 32
_ATTRIBUTES, _METHODS = "attributes", "own"


@runtime_checkable
class Copyable(Protocol):
    """An environment that gives its state away and takes it back."""

    def get_state(self) -> Any:
        """Returns all that later steps depend on, as plain data."""

    def set_state(self, state: Any) -> None:
        """Takes back what `get_state` gave."""


def read(env: Any) -> dict[str, Any]:
    """Returns what is known of an environment's state.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`.

    Returns:
        dict of plain data, copied.
    """
    taken: dict[str, Any] = plain_data.copied(_read(env))
    return taken


def write(env: Any, state: dict[str, Any]) -> None:
    """Gives an environment the state that `read` returned.

    Args:
        env: As of `read`, one made in the same way.
        state: dict, as returned by `read`.

    Raises:
        ValueError: If it is that of another kind of environment.
    """
    _write(env, plain_data.copied(state))


def repeats(env: "VectorEnvAdapter") -> bool:
    """Says whether an environment's state is all that its future depends on.

    A copy takes some random steps, gets the state from before them, and takes
    them once more.

    Args:
        env: `VectorEnvAdapter`, reset. Left as it is.

    Returns:
        bool. `False` where it cannot be copied, or does not do the same again.
    """
    try:
        twin = copy.deepcopy(env)
        played = []
        for _ in range(2):
            # Before the first time too: some copies are made anew.
            write(twin.env, read(env.env))
            twin.set_state(env.get_state())
            played.append(_play(twin))
        return _same(*played)
    except Exception as error:
        # Of any type: it depends on what the environment is made of.
        logger.debug("No state of %s is kept: %r", env.name, error)
        return False


def _read(env: Any) -> dict[str, Any]:
    """Returns the state of an environment and of those within it."""
    if isinstance(env, Copyable):
        return {_METHODS: env.get_state()}
    attributes: dict[str, Any] = {}
    within: dict[str, Any] = {}
    simulated: dict[str, Any] = {}
    for name, value in vars(env).items():
        if _is_env(value):
            within[name] = _read(value)
        elif isinstance(value, list | tuple) and any(map(_is_env, value)):
            within[name] = [_read(each) for each in value]
        elif _is_simulation(value):
            simulated[name] = _simulation(env.model, value)
        elif plain_data.is_plain(value):
            attributes[name] = value
    return {
        "kind": type(env).__name__,
        _ATTRIBUTES: attributes,
        "within": within,
        "simulated": simulated,
    }


def _write(env: Any, state: dict[str, Any]) -> None:
    """Gives their states to an environment and to those within it."""
    if _METHODS in state:
        env.set_state(state[_METHODS])
        return
    if state["kind"] != type(env).__name__:
        raise ValueError(
            f"Expected the state of a {type(env).__name__}. "
            f"Received: that of a {state['kind']}"
        )
    for name, inner in state["within"].items():
        value = getattr(env, name)
        if isinstance(inner, list):
            for each, its in zip(value, inner, strict=True):
                _write(each, its)
        else:
            _write(value, inner)
    for name, inner in state["simulated"].items():
        _set_simulation(env.model, getattr(env, name), inner)
    vars(env).update(state[_ATTRIBUTES])


def _is_env(value: Any) -> bool:
    """Whether a value is an environment, or several of them together."""
    return isinstance(value, gymnasium.Env | VectorEnv)


def _is_simulation(value: Any) -> bool:
    """Whether a value is what a simulation of MuJoCo has computed."""
    mujoco: Any = sys.modules.get("mujoco")
    return mujoco is not None and isinstance(value, mujoco.MjData)


def _simulation(model: Any, data: Any) -> np.ndarray:
    """Returns the state of a simulation, as MuJoCo copies it."""
    mujoco: Any = sys.modules["mujoco"]
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state


def _set_simulation(model: Any, data: Any, state: np.ndarray) -> None:
    """Gives a simulation its state, and computes what follows from it."""
    mujoco: Any = sys.modules["mujoco"]
    mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
    mujoco.mj_forward(model, data)
    # Computing it has warmed the solver's start up.
    mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)


def _play(env: "VectorEnvAdapter") -> list[Any]:
    """Takes random steps, always the same, and returns what they gave."""
    space = batch_space(copy.deepcopy(env.action_space), env.num_envs)
    space.seed(0)
    return [
        copy.deepcopy(env.step(_arrays(space.sample())))
        for _ in range(_STEPS_COMPARED)
    ]


def _arrays(action: Any) -> Any:
    """Returns an action that was drawn as a tree of arrays."""
    if isinstance(action, dict):
        return {key: _arrays(each) for key, each in action.items()}
    if isinstance(action, tuple):
        return tuple(map(_arrays, action))
    return np.asarray(action)


def _same(first: Any, second: Any) -> bool:
    """Whether two trees are the same to the last bit."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            _same(first[key], second[key]) for key in first
        )
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    return np.array_equal(np.asarray(first), np.asarray(second))
