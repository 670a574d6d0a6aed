"""Adaptation of any environment to the one interface that datasets use."""

import operator
import weakref
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeGuard

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv

from keras_rl2.envs import gymnasium_vector_env as vector_envs
from keras_rl2.envs.games import Games
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.making import make_vector_env
from keras_rl2.envs.players_env import PlayersEnv
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.envs.vector_env import Maker
from keras_rl2.envs.vector_env import Step
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

_MODES: dict[AutoresetMode, type[vector_envs.GymnasiumVectorEnv]] = {
    AutoresetMode.NEXT_STEP: vector_envs.NextStepEnv,
    AutoresetMode.SAME_STEP: vector_envs.SameStepEnv,
    AutoresetMode.DISABLED: vector_envs.ManualResetEnv,
}

# By id, as an environment need not be hashable. An adapter holds on to what it
# was made of, so the id cannot pass to another one while the entry lives.
_ADAPTERS: weakref.WeakValueDictionary[int, VectorEnvAdapter] = (
    weakref.WeakValueDictionary()
)


def as_vector_env(
    env: GivenEnv,
    num_envs: int = 1,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[EnvWrapper] = (),
) -> VectorEnvAdapter:
    """Returns the one interface over any kind of environment.

    The same environment always gets the same adapter, as long as that adapter
    is referenced, so that a dataset and an evaluation that share an environment
    notice each other's resets.

    Args:
        env: One of
            - `gymnasium.Env`;
            - `gymnasium.vector.VectorEnv`, synchronous, asynchronous or
              native, with any autoreset mode;
            - an EnvPool environment made with `env_type="gymnasium"`;
            - `str`, the id of a registered environment. Its native vector
              environment is used if it has one, as in `gymnasium.make_vec`;
            - a function that makes a `gymnasium.Env`, such as its class;
            - `Games`, as `keras_rl2.envs.parallel` and `turn_based` make them;
            - a vector environment of SuperSuit, of `num_cpus=0`: its games;
            - a `VectorEnvAdapter`, which is returned as it is.
        num_envs: int. Number of environments to make from an id or by a
            function. Defaults to `1`.
        env_kwargs: dict or None. Arguments of the environment, with an id
            only. Defaults to `None`.
        wrappers: Sequence of functions from a `gymnasium.Env` to another one,
            with an id only. Each single environment is wrapped in them, in
            this order, so that no native vector environment is used. Defaults
            to `()`.

    Returns:
        A `VectorEnvAdapter`.

    Raises:
        ValueError: If `env` is none of these, if one of its spaces is not
            supported, if `num_envs` disagrees with its own number, or if
            there are `env_kwargs` or `wrappers` for an existing environment.

    Example:

    >>> env = as_vector_env("CartPole-v1", num_envs=8)
    >>> env.num_envs, env.action_space
    (8, Discrete(2))
    >>> as_vector_env(env) is env
    True
    """
    # The rows of games are more than the games that are made.
    expected = 1 if is_maker(env) else num_envs
    if is_maker(env):
        env = make_vector_env(
            env, num_envs, env_kwargs=env_kwargs, wrappers=wrappers
        )
    elif env_kwargs or wrappers:
        raise ValueError(
            "Expected an id with `env_kwargs` and `wrappers`. "
            f"Received: env={env!r}"
        )
    adapter = _ADAPTERS.get(id(env))
    if isinstance(env, VectorEnvAdapter):
        adapter = env
    elif adapter is None or adapter.given is not env:
        adapter = _adapt(env)
        adapter.given = env
        _ADAPTERS[id(env)] = adapter
    if expected not in (1, adapter.num_envs):
        raise ValueError(
            f"Expected an id or a function, or {num_envs} environments. "
            f"Received: env={adapter.name} with {adapter.num_envs} environments"
        )
    return adapter


class SingleEnv(VectorEnvAdapter):
    """A `gymnasium.Env`, stepped directly and reset as an episode ends."""

    _is_batched = False

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env, 1, env.observation_space, env.action_space)
        spec = self.observation_spec
        self._shape = spec.shape if isinstance(spec, ArraySpec) else ()

    def step_envs(self, action: Tree[np.ndarray]) -> Step:
        """Takes one step, and a reset if it ended the episode."""
        batch = map_leaves(self._cast_action, self._action_spec, action)
        # [1, ...] -> [...]
        given = self.env.step(
            batch[0]
            if isinstance(batch, np.ndarray)
            else map_leaves(operator.itemgetter(0), batch)
        )
        if self.steps == 1:
            self._checks.check_step(given)
        observation, reward, terminated, truncated, _ = given
        observation = self._to_observation(observation)
        final_observation = None
        if terminated or truncated:
            final_observation = observation
            observation = self._to_observation(self.env.reset()[0])
        return (
            observation,
            np.array(reward, np.float32, ndmin=1),
            np.array(terminated, np.bool_, ndmin=1),
            np.array(truncated, np.bool_, ndmin=1),
            final_observation,
        )

    def _culprits(self, error: BaseException) -> np.ndarray | None:
        """Returns the only environment, `[1]`."""
        return np.ones(1, np.bool_)

    def _to_observation(self, observation: object) -> Any:
        """Copies, since some environments write to one array for ever."""
        if self._dtype is not None:
            copy = np.array(observation, self._dtype)
            # Otherwise it might be broadcast where it is stored.
            if copy.shape != self._shape:
                self._checks.check_observation(observation)
            # [...] -> [1, ...]
            return copy[None]
        return map_leaves(
            lambda spec, array: np.array(array, spec.dtype)[None],
            self.observation_spec,
            observation,
        )


def is_maker(env: object) -> TypeGuard[Maker]:
    """Returns whether an argument is an id or a function, no environment."""
    made = gymnasium.Env | VectorEnv | VectorEnvAdapter
    return isinstance(env, str) or (callable(env) and not isinstance(env, made))


def _adapt(env: object) -> VectorEnvAdapter:
    """Creates the adapter of an environment."""
    # First, as an EnvPool environment is both this and a `gymnasium.Env`.
    if isinstance(env, VectorEnv):
        bases = type(env.unwrapped).__mro__
        if any(e.__module__.partition(".")[0] == "envpool" for e in bases):
            return vector_envs.EnvPoolEnv(env)
        # Of SuperSuit, whose vectors hide who is out of the game.
        vectors = getattr(env, "vec_envs", [env])
        if all(hasattr(each, "par_env") for each in vectors):
            return PlayersEnv(Games([each.par_env for each in vectors]))
        # Of its class: a wrapper passes on the attributes of its environment.
        kind: Any = getattr(type(env), "adapter_kind", None)
        adapter: VectorEnvAdapter = (kind or _MODES[_autoreset_mode(env)])(env)
        return adapter
    if isinstance(env, gymnasium.Env):
        return SingleEnv(env)
    if isinstance(env, Games):
        return PlayersEnv(env)
    raise ValueError(
        "Expected an environment of Gymnasium, single or vector, or of EnvPool "
        "(env_type='gymnasium'), an id, a function that makes one, or games "
        "of several players (`keras_rl2.envs.parallel`). "
        f"Received: env={env!r} of type {type(env)}"
    )


def _autoreset_mode(env: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """Reads the autoreset mode; guessing it could spoil the training data."""
    mode = env.metadata.get("autoreset_mode")
    try:
        return AutoresetMode(mode)
    except ValueError:
        raise ValueError(
            f"Expected env.metadata['autoreset_mode'] of {env} to be a "
            "gymnasium.vector.AutoresetMode, AutoresetMode.SAME_STEP where the "
            "last observation of an episode is in info['final_obs']; for "
            "SuperSuit, num_cpus=0 in `concat_vec_envs_v1`. "
            f"Received: {mode!r}"
        ) from None
