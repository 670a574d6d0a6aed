"""Finding out whether an environment's state is all that its future depends on.

It is tried with environments that are made for it, never with a copy: a copy
of a pipe, or of the number of a connection, speaks to the same simulator.
"""

import contextlib
import copy
import functools
import random
import time
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
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import allowed_choice
from keras_rl2.spaces.supported import is_masked

if TYPE_CHECKING:
    from keras_rl2.envs.vector_env import VectorEnvAdapter

# Steps that are taken to see whether an environment repeats itself, and those
# that leave it within an episode: its state is read, or given to it, there.
_STEPS_COMPARED, _STEPS_WITHIN = 32, 5
# Steps of a slow simulator are not compared for longer.
_MOST_SECONDS = 30.0

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


def goes_on(
    env: "VectorEnvAdapter", state: dict[str, Any], observation: Any
) -> bool:
    """Says whether an environment that was given a state repeats itself.

    Args:
        env: `VectorEnvAdapter`, which nobody has used so far, but for its own
            state.
        state: dict. That of its environment.
        observation: `[B, ...]`. What it had shown last.

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
            played.append(_play(env, observation)[0])
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
        _, observation = _play(first, first.reset(seed=0))
        state = env_state.read(first.env, noted[0])
        own = first.get_state()
        played, _ = _play(first, observation)
        # Afterwards: they may share what they draw from.
        env_state.write(second.env, state, noted[1])
        second.set_state(own)
        return played == _play(second, observation)[0]


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


def _play(
    env: "VectorEnvAdapter", observation: Any
) -> tuple[bytes | None, Any]:
    """Takes random steps, always the same, also after a reset.

    Args:
        env: `VectorEnvAdapter`.
        observation: `[B, ...]`. What it has shown last.

    Returns:
        bytes, the same of the same observations, rewards and ends; and what it
        shows in the end, within an episode.

    Raises:
        TimeoutError: If it takes too long.
    """
    until = time.monotonic() + _MOST_SECONDS
    draw = _Actions(env)
    given: list[Any] = []
    for count in (_STEPS_COMPARED, _STEPS_COMPARED, _STEPS_WITHIN):
        if given:
            observation = env.reset()
            given.append(copy.deepcopy(observation))
        for _ in range(count):
            if time.monotonic() > until:
                raise TimeoutError(f"no answer within {_MOST_SECONDS:.0f} s")
            step = copy.deepcopy(env.step(draw(observation)))
            observation = step[0]
            given.append(step)
    return env_values.mark(given), observation


class _Actions:
    """Draws random actions, always the same.

    Args:
        env: `VectorEnvAdapter`. That takes them.
    """

    def __init__(self, env: "VectorEnvAdapter") -> None:
        self._space = batch_space(copy.deepcopy(env.action_space), env.num_envs)
        self._space.seed(0)
        self._generator = np.random.default_rng(0)
        self._choices = (
            env.action_space
            if is_masked(env.observation_space)
            and isinstance(env.action_space, gymnasium.spaces.Discrete)
            else None
        )

    def __call__(self, observation: Any) -> Any:
        """Returns an action for each environment, a tree of arrays."""
        if self._choices is None:
            return _arrays(self._space.sample())
        mask = np.asarray(observation[ACTION_MASK])
        scores = self._generator.random(mask.shape)
        return self._choices.start + allowed_choice(mask, scores)


def _arrays(action: Any) -> Any:
    """Returns an action that was drawn as a tree of arrays."""
    if isinstance(action, dict):
        return {key: _arrays(each) for key, each in action.items()}
    if isinstance(action, tuple):
        return tuple(map(_arrays, action))
    return np.asarray(action)
