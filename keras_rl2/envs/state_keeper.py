"""Saving the state of environments, where it determines their future.

Whether it does is tried with environments that are made for it, never with a
copy: a copy of a pipe, or of a connection's number, uses the same simulator.
"""

import contextlib
import copy
import functools
import operator
import random
import time
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
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
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.env_values import GymnasiumEnv
from keras_rl2.envs.envpool_env import EnvPoolEnv
from keras_rl2.envs.vector_env import Observation
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import allowed_choice
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.trees import map_leaves

# Steps of a trial that are compared, and steps that lead into the middle of an
# episode, where the state is read or restored.
_STEPS_COMPARED, _STEPS_WITHIN = 32, 5
# Steps of a slow simulator are not compared for longer.
_MOST_SECONDS = 30.0
# Names of attributes that a message has room for.
_MOST_NAMES = 5

Maker = Callable[[], Any]


class StateKeeper:
    """Saves and restores environments whose state determines their future.

    Whether it does is tried when the state is read for the first time: with
    other environments that are made in the same way. Where it is not known how
    to make them, the environments that restore the state are tried, before they
    are used.

    Args:
        env: `VectorEnvAdapter`. The environments.

    Attributes:
        refusal: str. The reason why no state is saved; empty if one is.

    Example:

    >>> from keras_rl2.envs.adapt import as_vector_env
    >>> env, other = (as_vector_env("CartPole-v1") for _ in range(2))
    >>> observation = env.reset(seed=0)
    >>> state = StateKeeper(env).read()
    >>> StateKeeper(other).write(state, observation)
    True
    """

    def __init__(self, env: VectorEnvAdapter) -> None:
        self._env = env
        self._is_proven: bool | None = None
        self.refusal = ""

    def read(self) -> dict[str, Any] | None:
        """Returns the state of the environments, if it can be saved.

        Returns:
            dict of plain data; None with a `refusal`.
        """
        if self.refusal:
            return None
        env = self._env
        try:
            state = env_state.read(env.env, env.made)
            if self._is_proven is None:
                self.refusal = self._reason()
        except Exception as error:
            # Environments may raise errors of any type.
            self.refusal = self._named(repr(error))
        if self.refusal:
            return None
        return {"state": state, "proven": self._is_proven}

    def write(self, kept: dict[str, Any], observation: Observation) -> bool:
        """Restores a state in environments that have not been used.

        Args:
            kept: dict, as returned by `read`; or a state alone, of earlier
                releases.
            observation: `[B, ...]`. The last observation before it was read.

        Returns:
            bool. False if new episodes have to begin.

        Raises:
            ValueError: If it belongs to another kind of environment.
        """
        env = self._env
        env.watch()
        state, own = kept.get("state", kept), env.get_state()
        goes_on = kept.get("proven", True) or _goes_on(env, state, observation)
        env.set_state(own)
        if not goes_on:
            return False
        env_state.write(env.env, state, env.made)
        inner = env.env.unwrapped
        if env_processes.can_be_asked(inner):
            rows = [
                map_leaves(operator.itemgetter(index), observation)
                for index in range(env.num_envs)
            ]
            env_processes.end_episodes(inner, env.pending_reset, rows)
        return True

    def _reason(self) -> str:
        """Returns why the state cannot be saved; an empty string if it can."""
        env = self._env.env
        if isinstance(self._env, EnvPoolEnv):
            return self._named("EnvPool gives none")
        if env_state.writes_files(env):
            return self._named("another one would write to the same files")
        names = env_state.not_kept(env)
        repeats: bool | None = True
        if names or not env_state.has_own_methods(env):
            try:
                repeats = _repeats(self._env)
            except Exception as error:
                # Environments may raise errors of any type.
                return self._named(f"others fail with it: {error!r}", names)
        if repeats is False:
            return self._named(
                "others that restore it do not repeat the steps", names
            )
        if repeats is None and names:
            return self._named("it is unknown how to make others", names)
        # The environments of a vector were tried, but no wrappers around it.
        several = isinstance(env.unwrapped, AsyncVectorEnv | SyncVectorEnv)
        whole = env is env.unwrapped or not several
        self._is_proven = repeats is True and whole
        return ""

    def _named(self, reason: str, names: Sequence[str] = ()) -> str:
        """Returns the reason, with the names of attributes, as a sentence."""
        named = ", ".join(names[:_MOST_NAMES])
        more = len(names) - _MOST_NAMES
        if more > 0:
            named = f"{named} and {more} more"
        of = f" (attributes that cannot be saved: {named})" if names else ""
        return f"the state of {self._env.name} is not saved: {reason}{of}"


def _repeats(env: VectorEnvAdapter) -> bool | None:
    """Returns whether environments repeat the steps of others with their state.

    Two are made; one takes some random steps, and the other one restores its
    state. Of several environments, one of each kind is tried.

    Args:
        env: `VectorEnvAdapter`, reset. Left as it is.

    Returns:
        bool; None if it is not known how to make another one.

    Raises:
        Exception: An error of environments that are made, or that restore a
            state.
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


def _goes_on(
    env: VectorEnvAdapter, state: dict[str, Any], observation: Observation
) -> bool:
    """Returns whether an environment repeats its steps when restored twice.

    Args:
        env: `VectorEnvAdapter`, not used so far. It is left in another state.
        state: dict. The state of its environment.
        observation: `[B, ...]`. The last observation before it was read.

    Returns:
        bool.
    """
    own, made = env.get_state(), env.made or {}
    played = []
    # Environments may raise errors of any type.
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


def _maker_of(env: GymnasiumEnv) -> Maker | None:
    """Returns a function that makes another environment, by its spec."""
    spec = getattr(env, "spec", None)
    # Rendering for humans would open another window.
    if not isinstance(spec, EnvSpec) or env.render_mode == "human":
        return None
    if isinstance(env, VectorEnv):
        # The spec does not contain wrappers.
        if env is not env.unwrapped:
            return None
        return functools.partial(gymnasium.make_vec, spec)
    if any(each.kwargs is None for each in spec.additional_wrappers):
        return None
    return functools.partial(gymnasium.make, spec)


def _one_repeats(make: Maker, env: GymnasiumEnv) -> bool | None:
    """Returns whether a new environment repeats the steps of another one.

    Args:
        make: Callable. Makes an environment.
        env: Environment made by it, which is left as it is.

    Returns:
        bool; None if `make` makes another kind of environment.
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
        noted = [env_values.as_made(each.env) for each in twins]
        _, observation = _play(first, first.reset(seed=0))
        state = env_state.read(first.env, noted[0])
        own = first.get_state()
        played, _ = _play(first, observation)
        # Afterwards: they may share random generators.
        env_state.write(second.env, state, noted[1])
        second.set_state(own)
        return played == _play(second, observation)[0]


def _repeats_here(env: GymnasiumEnv, maker: bytes | None) -> bool | None:
    """Tries the environment of this process as `_one_repeats` does."""
    if maker is None:
        return True
    return _one_repeats(cloudpickle.loads(maker), env)


def _close(env: GymnasiumEnv) -> None:
    """Closes an environment that was made for a trial."""
    with contextlib.suppress(Exception):
        env.close()


@contextlib.contextmanager
def _same_draws(spaces: Sequence[gymnasium.Space[Any]]) -> Iterator[None]:
    """Restores random states that environments may share."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    drawn = [env_state.read_draws(space) for space in spaces]
    try:
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        for space, states in zip(spaces, drawn, strict=True):
            env_state.write_draws(space, states)


def _play(
    env: VectorEnvAdapter, observation: Observation
) -> tuple[bytes | None, Any]:
    """Takes random steps, always the same, also after a reset.

    Args:
        env: `VectorEnvAdapter`.
        observation: `[B, ...]`. Its last observation.

    Returns:
        A digest of the observations, rewards and ends of episodes; and the
        last observation, within an episode.

    Raises:
        TimeoutError: If the steps take too long.
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
        env: `VectorEnvAdapter`, for which they are drawn.
    """

    def __init__(self, env: VectorEnvAdapter) -> None:
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


def _arrays(action: object) -> Any:
    """Converts a sampled action to a tree of arrays."""
    if isinstance(action, dict):
        return {key: _arrays(each) for key, each in action.items()}
    if isinstance(action, tuple):
        return tuple(map(_arrays, action))
    return np.asarray(action)
