"""The common interface of all environments."""

import abc
import contextlib
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import TypeAlias

import gymnasium
import numpy as np
from gymnasium import Space
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector import VectorEnv

from keras_rl2.envs import worker_processes
from keras_rl2.envs.environment_checks import EnvironmentChecks
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

#: An array, or a dict or tuple of them.
Observation = Tree[np.ndarray]

#: An environment as Gymnasium has them, single or several in one.
GymnasiumEnv: TypeAlias = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]

#: An id, or a function that makes an environment.
Maker: TypeAlias = str | Callable[[], gymnasium.Env[Any, Any]]

# observation, reward, terminated, truncated, final_observation
Step = tuple[Any, np.ndarray, np.ndarray, np.ndarray, Any]


class VectorEnvAdapter(abc.ABC):
    """B environments that are stepped together and reset themselves.

    `as_vector_env` makes one from any environment. There is one subclass for
    each way in which environments report the end of an episode, so that the
    way is chosen once, and not in each call of `step`, the hottest of all.

    Errors of an environment keep their type, and gain a note with the index of
    the environment and the step.

    The letter B stands for the number of environments throughout.

    Args:
        env: The environment itself.
        num_envs: int. B.
        observation_space: `gymnasium.Space` of one environment.
        action_space: `gymnasium.Space` of one environment.

    Attributes:
        env: The environment itself.
        name: str. Name of the environment in messages.
        num_envs: int. B.
        observation_space: `gymnasium.Space` of one environment.
        action_space: `gymnasium.Space` of one environment.
        observation_spec: tree of `keras_rl2.ArraySpec` of one observation.
        masks_reset_rows: bool. True if a step after the end of an episode is
            a reset only, and no transition (Gymnasium's NEXT_STEP).
        pending_reset: `[B]` bool. Environments whose next step is such a
            reset. Never changed in place.
        resets: int. Number of calls of `reset`. By it, a dataset notices that
            others, e.g. an evaluation, have reset the environment.
        steps: int. Number of calls of `step`.
        failed: `[B]` bool. The environments that raised the last error; all of
            them if that is not known.
        remake: function or None. Makes the environment again, if the library
            made it.

    Raises:
        ValueError: If a space is not supported.

    Example:

    >>> import gymnasium
    >>> from keras_rl2.envs.adapt import as_vector_env
    >>> env = as_vector_env(gymnasium.make("CartPole-v1"))
    >>> env.reset(seed=0).shape
    (1, 4)
    >>> observation, reward, terminated, truncated, final = env.step(
    ...     np.array([1], np.int32)
    ... )
    >>> reward, terminated, truncated, final
    (array([1.], dtype=float32), array([False]), array([False]), None)
    """

    masks_reset_rows = False
    # Whether the environment itself returns batches.
    _is_batched = True

    def __init__(
        self,
        env: Any,
        num_envs: int,
        observation_space: Space[Any],
        action_space: Space[Any],
    ) -> None:
        spaces.check_observation_space(observation_space)
        spaces.check_action_space(action_space)
        self.env = env
        self.name = _name(env)
        self.num_envs = int(num_envs)
        self.observation_space = observation_space
        self.action_space = action_space
        spec = spaces.observation_spec(observation_space)
        self.observation_spec = spec
        # For a single array, the most frequent case: no tree is walked then.
        self._dtype = (
            np.dtype(spec.dtype) if isinstance(spec, ArraySpec) else None
        )
        self._action_spec = spaces.action_spec(action_space)
        self.pending_reset = np.zeros(num_envs, np.bool_)
        self.resets = 0
        self.steps = 0
        self.failed = np.zeros(num_envs, np.bool_)
        self.remake: Callable[[], Any] | None = None
        leading = (num_envs,) if self._is_batched else ()
        self._checks = EnvironmentChecks(self.name, observation_space, leading)

    def reset(self, seed: int | None = None) -> Any:
        """Starts a new episode in every environment.

        Args:
            seed: int. Environment i is seeded with `seed + i`, in the way
                of Gymnasium, and with it its wrappers and spaces. EnvPool takes
                its seed in `envpool.make` only and ignores this one. Defaults
                to `None`: the random states continue.

        Returns:
            Observation `[B, ...]`, a tree of arrays.

        Raises:
            MismatchError: If the observation does not fit its space.
            WorkerError: If a process of an environment is lost.
        """
        try:
            observation = self._reset(None if seed is None else int(seed))
        except BaseException as error:
            self._fail(error, f"a reset after {self.steps} steps")
            raise
        self.pending_reset = np.zeros(self.num_envs, np.bool_)
        self.resets += 1
        return observation

    def step(self, action: Tree[np.ndarray]) -> Step:
        """Takes one step in every environment.

        An observation may live in memory that the environment reuses: it is
        good until the next step.

        Args:
            action: `[B, ...]` array (a dict or tuple of them for such a space)
                with members of the action space, which is cast to the space's
                dtype and neither shifted nor clipped. Ignored where
                `pending_reset`.

        Returns:
            A tuple `(observation, reward, terminated, truncated,
            final_observation)`: the observation for the next action
            `[B, ...]`, a tree of arrays; float32 `[B]`, bool `[B]`, bool `[B]`;
            and `None` or a tree as `observation`. Where an episode ended, the
            row of `final_observation` is its true last observation (the other
            rows are valid observations without meaning). It is `None` if no
            episode ended, and always if `masks_reset_rows`: then `observation`
            is the last one itself, and the next row of that environment is a
            reset with reward 0 that ends nothing.

        Raises:
            ValueError: If the action has the wrong shape.
            MismatchError: If the first step does not have Gymnasium's form, or
                its observation does not fit its space.
            WorkerError: If a process of an environment is lost.
        """
        self.steps += 1
        try:
            return self._step(action)
        except BaseException as error:
            self._fail(error, f"step {self.steps}")
            raise

    def restart(self, seed: int | None = None) -> Any:
        """Starts new episodes in every environment, after one has failed.

        Environments that the library made are made again; others are reset.

        Args:
            seed: int or None. Seed for `reset` of environments that are made
                again; the random states of others continue. Defaults to `None`.

        Returns:
            Observation `[B, ...]`, a tree of arrays.

        Raises:
            RuntimeError: If they can neither be made again nor reset.
        """
        return self.reset(seed if self._make_again() else None)

    def shielded(self) -> contextlib.AbstractContextManager[None]:
        """Protects processes of environments from signals to the whole job.

        A terminal sends SIGINT to all processes, and a batch system SIGTERM:
        finishing a round after that needs the environments.
        """
        return contextlib.nullcontext()

    @abc.abstractmethod
    def _step(self, action: Tree[np.ndarray]) -> Step:
        """Steps the environment itself; see `step`."""

    @abc.abstractmethod
    def _reset(self, seed: int | None) -> Any:
        """Resets the environment itself, and checks its return value."""

    def close(self) -> None:
        """Closes the environment, and ends processes that do not close."""
        self.env.close()

    def _make_again(self) -> bool:
        """Makes the environment again; returns whether that is possible."""
        if self.remake is None:
            return False
        # A failed environment may fail to close as well.
        with contextlib.suppress(Exception):
            self.env.close()
        self.env = self.remake()
        return True

    def _fail(self, error: BaseException, doing: str) -> None:
        """Adds the environment and the step to an error."""
        failed = self._culprits(error)
        if failed is None:
            self.failed = np.ones(self.num_envs, np.bool_)
            which = f"one of the {self.num_envs} environments"
        else:
            self.failed = failed
            which = f"environment {', '.join(map(str, np.flatnonzero(failed)))}"
        error.add_note(f"In {doing} of {which} of {self.name}.")

    def _culprits(self, error: BaseException) -> np.ndarray | None:
        """Returns the environments that raised an error, `[B]`, if known."""
        return None

    def get_state(self) -> dict[str, Any]:
        """Returns the state of the adapter itself, without the environments.

        Returns:
            A dictionary with `resets`, an `int`, and `pending_reset`, `[B]`
            bool.
        """
        return {
            "resets": self.resets,
            "pending_reset": self.pending_reset.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores a state.

        Args:
            state: dict, as returned by `get_state`.

        Raises:
            ValueError: If it belongs to another number of environments, or to
                an environment that reports the end of episodes differently.
        """
        pending_reset = np.array(state["pending_reset"], np.bool_)
        if pending_reset.shape != (self.num_envs,) or (
            pending_reset.any() and not self.masks_reset_rows
        ):
            raise ValueError(
                f"Expected the state of {self.num_envs} environments that end "
                f"episodes as {self.name} does. "
                f"Received: pending_reset={pending_reset}"
            )
        self.pending_reset = pending_reset
        self.resets = int(state["resets"])

    def _to_action(self, action: Any) -> Any:
        """Casts an action, always to a copy: environments may change it."""
        if isinstance(self._action_spec, ArraySpec):
            return self._cast_action(self._action_spec, action)
        return map_leaves(self._cast_action, self._action_spec, action)

    def _cast_action(self, spec: ArraySpec, action: np.ndarray) -> np.ndarray:
        """Casts one array of an action."""
        shape = (self.num_envs, *spec.shape)
        if action.shape != shape:
            raise ValueError(
                f"Expected an action of shape {shape} for {self.name}. "
                f"Received: action of shape {action.shape}"
            )
        return action.astype(spec.dtype)

    def _to_observation(self, observation: object) -> Any:
        """Casts an observation, without a copy where that is possible."""
        if self._dtype is not None:
            return np.asarray(observation, self._dtype)
        return map_leaves(
            lambda spec, array: np.asarray(array, spec.dtype),
            self.observation_spec,
            observation,
        )


#: An environment as users pass it; see `keras_rl2.envs.adapt`.
GivenEnv: TypeAlias = Maker | GymnasiumEnv | VectorEnvAdapter


def seed_layers(env: GymnasiumEnv, seed: int) -> None:
    """Seeds `np_random` and the spaces of an environment and its wrappers.

    Gymnasium's `reset` seeds the innermost environment only, and only once its
    own `reset` is reached: neither draws of wrappers from `np_random` before
    that, nor draws from any spaces, depend on the seed.

    In a vector environment, environment i gets `seed + i`. In processes with a
    custom `worker`, only `np_random` is seeded.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`, to be reset with
            the same seed.
        seed: int. At least 0.

    Example:

    >>> import gymnasium
    >>> def draw(seed):
    ...     env = gymnasium.make("Pendulum-v1")
    ...     seed_layers(env, seed)
    ...     return env.action_space.sample(), env.np_random.normal()
    >>> draw(3) == draw(3)
    True
    """
    known: set[int] = set()
    for place, space in enumerate(_spaces(env)):
        if id(space) not in known:
            known.add(id(space))
            own = np.random.SeedSequence((seed, 1 + place)).generate_state(1)
            space.seed(int(own[0]))
    inner = env.unwrapped
    if isinstance(inner, SyncVectorEnv):
        for index, each in enumerate(inner.envs):
            seed_layers(each, seed + index)
    elif isinstance(inner, AsyncVectorEnv):
        seeds = range(seed, seed + inner.num_envs)
        if worker_processes.can_be_asked(inner):
            worker_processes.ask(inner, seed_layers, [*zip(seeds)])
        else:
            drawing = [np.random.default_rng((each, 0)) for each in seeds]
            inner.set_attr("np_random", drawing)
    else:
        # Some environments have it as a property that cannot be set.
        with contextlib.suppress(AttributeError):
            # The pair gives another stream than a reset with the seed.
            inner.np_random = np.random.default_rng((seed, 0))


def _spaces(env: GymnasiumEnv | None) -> Iterator[Space[Any]]:
    """Yields the spaces of each layer, from the outermost inwards."""
    single = ("single_action_space", "single_observation_space")
    names = ("action_space", "observation_space")
    while env is not None:
        for name in (*names, *single) if isinstance(env, VectorEnv) else names:
            space = getattr(env, name, None)
            if isinstance(space, Space):
                yield space
        env = getattr(env, "env", None) if env is not env.unwrapped else None


def _name(env: object) -> str:
    """Returns the id of an environment, or its class's name."""
    env_id = getattr(getattr(env, "spec", None), "id", None)
    if isinstance(env_id, str):
        return env_id
    return type(getattr(env, "unwrapped", env)).__name__
