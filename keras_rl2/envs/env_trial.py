"""Finding out whether an environment's state is all that its future depends on.

It is tried with environments that are made for it, never with a copy: a copy
of a pipe, or of the number of a connection, speaks to the same simulator.
"""

import contextlib
import copy
import functools
import random
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import cloudpickle
import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space

from keras_rl2.envs import env_processes
from keras_rl2.envs import env_state
from keras_rl2.envs import env_values
from keras_rl2.envs import space_draws
from keras_rl2.envs.adapt import as_vector_env

if TYPE_CHECKING:
    from keras_rl2.envs.vector_env import VectorEnvAdapter

# Steps that are taken to see whether an environment repeats itself.
_STEPS_COMPARED = 32

Maker = Callable[[], Any]


def repeats(env: "VectorEnvAdapter") -> bool | None:
    """Says whether environments with the state of others do the same.

    Two are made; one takes some random steps, and the other one gets its
    state. Of several environments, this is done for one of each kind.

    Args:
        env: `VectorEnvAdapter`, reset. Left as it is.

    Returns:
        bool; None where nobody knows how to make another one.

    Raises:
        Exception: What is raised by environments that are made, or by those
            that are given a state.
    """
    inner = env.env.unwrapped
    if isinstance(inner, AsyncVectorEnv):
        kinds = env_processes.ask(inner, env_state.kinds)
        makers = [cloudpickle.dumps(maker) for maker in inner.env_fns]
        # One of each kind.
        tried = [
            (makers[index] if kinds.index(kind) == index else None,)
            for index, kind in enumerate(kinds)
        ]
        return all(env_processes.ask(inner, _repeats_here, tried))
    if isinstance(inner, SyncVectorEnv):
        kinds = [env_state.kinds(each) for each in inner.envs]
        return all(
            _one_repeats(inner.env_fns[index], inner.envs[index])
            for index, kind in enumerate(kinds)
            if kinds.index(kind) == index
        )
    make = env.remake or _maker_of(env.env)
    if make is None:
        return None
    return _one_repeats(make, env.env)


def goes_on(env: "VectorEnvAdapter", state: dict[str, Any]) -> bool:
    """Says whether an environment that was given a state repeats itself.

    Args:
        env: `VectorEnvAdapter`, which nobody has used so far, but for its own
            state.
        state: dict. That of its environment.

    Returns:
        bool. It is left somewhere else.
    """
    own, made = env.get_state(), env.made or {}
    played = []
    # Of any type: it depends on what the environment is made of.
    with contextlib.suppress(Exception):
        for _ in range(2):
            env_state.write(env.env, state, made)
            env.set_state(own)
            played.append(_play(env))
        if played[0] == played[1]:
            return True
    with contextlib.suppress(Exception):
        env_state.put_back(env.env, made)
    return False


def _maker_of(env: Any) -> Maker | None:
    """Returns what makes another environment, where Gymnasium knows."""
    spec = getattr(env, "spec", None)
    # Another window would be opened.
    if not isinstance(spec, EnvSpec) or env.render_mode == "human":
        return None
    if isinstance(env, VectorEnv):
        # A wrapper is not known to it.
        if env is not env.unwrapped:
            return None
        return functools.partial(gymnasium.make_vec, spec)
    if any(each.kwargs is None for each in spec.additional_wrappers):
        return None
    return functools.partial(gymnasium.make, spec)


def _one_repeats(make: Maker, env: Any) -> bool | None:
    """Says whether environments that are made in some way repeat themselves.

    Args:
        make: Callable. Makes one.
        env: What was made by it, which is left as it is.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_same_draws(env_state.all_spaces(env)))
        twins = []
        for _ in range(2):
            made = make()
            stack.callback(_close, made)
            if env_state.kinds(made) != env_state.kinds(env):
                return None
            twins.append(as_vector_env(made))
        first, second = twins
        noted = [env_state.as_made(each.env) for each in twins]
        first.reset(seed=0)
        _play(first)
        state = env_state.read(first.env, noted[0])
        own = first.get_state()
        played = _play(first)
        # Afterwards: they may share what they draw from.
        env_state.write(second.env, state, noted[1])
        second.set_state(own)
        return played == _play(second)


def _repeats_here(env: Any, maker: bytes | None) -> bool | None:
    """Does the same in the process of an environment."""
    if maker is None:
        return True
    return _one_repeats(cloudpickle.loads(maker), env)


def _close(env: Any) -> None:
    """Closes an environment that was made to be tried."""
    with contextlib.suppress(Exception):
        env.close()


@contextlib.contextmanager
def _same_draws(spaces: Sequence[gymnasium.Space[Any]]) -> Iterator[None]:
    """Leaves random numbers as they were that environments may share."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    drawn = [space_draws.read(space) for space in spaces]
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        for space, states in zip(spaces, drawn, strict=True):
            space_draws.write(space, states)


def _play(env: "VectorEnvAdapter") -> bytes | None:
    """Takes random steps, always the same, also after a reset.

    Returns:
        bytes. The same of the same observations, rewards and ends.
    """
    space = batch_space(copy.deepcopy(env.action_space), env.num_envs)
    space.seed(0)
    given: list[Any] = []
    for _ in range(2):
        given.extend(
            copy.deepcopy(env.step(_arrays(space.sample())))
            for _ in range(_STEPS_COMPARED)
        )
        given.append(copy.deepcopy(env.reset()))
    return env_values.mark(given)


def _arrays(action: Any) -> Any:
    """Returns an action that was drawn as a tree of arrays."""
    if isinstance(action, dict):
        return {key: _arrays(each) for key, each in action.items()}
    if isinstance(action, tuple):
        return tuple(map(_arrays, action))
    return np.asarray(action)
