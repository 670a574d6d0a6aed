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

from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.envs.errors import MismatchError
from keras_rl2.envs.games import Games
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

#: An environment as Gymnasium has them, single or several in one.
GymnasiumEnv: TypeAlias = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]

#: An id, or a function that makes an environment.
Maker: TypeAlias = str | Callable[[], gymnasium.Env[Any, Any]]

# How far an observation may lie outside of its space, in widths of the space
# and at least in ones: real environments overshoot a little, but a picture of
# 0 to 255 in a space of 0 to 1 is a mistake.
_MOST_WIDTHS = 10.0

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
        max_episode_steps: int or None. The time limit of its spec, if any.
        num_envs: int. B.
        observation_space: `gymnasium.Space` of one environment.
        action_space: `gymnasium.Space` of one environment.
        observation_spec: tree of `keras_rl2.ArraySpec` of one observation.
        masks_reset_rows: bool. True if a step after the end of an episode is
            a reset only, and no transition (Gymnasium's NEXT_STEP).
        pending_reset: `[B]` bool. Environments that take no action in the next
            step: it is such a reset, or the row waits, as that of a player who
            is out of the game. Such a row is never trained on. Replaced, never
            changed in place.
        players: tuple of str. Whose rows they are, B names; empty where each
            row is an environment of its own. Logs have the mean return of each
            name.
        resets: int. Number of calls of `reset`. By it, a dataset notices that
            others, such as an evaluation, have reset the environment.
        steps: int. Number of calls of `step`.

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
    resets = 0
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
        #: What `as_vector_env` made the adapter of.
        self.given = env
        single = _single(env)
        env_spec = getattr(single, "spec", None)
        class_name = type(getattr(single, "unwrapped", single)).__name__
        self.name = getattr(env_spec, "id", class_name)
        self.max_episode_steps = getattr(env_spec, "max_episode_steps", None)
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
        self.players: tuple[str, ...] = ()
        self.steps = 0
        leading = (num_envs,) if self._is_batched else ()
        self._checks = EnvironmentChecks(self.name, observation_space, leading)

    @property
    def source_kind(self) -> type[Any] | None:
        """Class of the source of a dataset's steps; None for the usual one."""
        return None

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
        waiting = self.pending_reset
        try:
            observation = self.reset_envs(None if seed is None else int(seed))
        except BaseException as error:
            self._fail(error, f"a reset after {self.steps} steps")
            raise
        if self.pending_reset is waiting:
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
            return self.step_envs(action)
        except BaseException as error:
            self._fail(error, f"step {self.steps}")
            raise

    def begins(self, waited: np.ndarray, ended: np.ndarray) -> np.ndarray:
        """Returns whether the next step is the first of an episode, `[B]`.

        Args:
            waited: `[B]` bool. `pending_reset` before the last step.
            ended: `[B]` bool. Whether that step ended the episode.
        """
        # NEXT_STEP environments begin an episode after the step that resets.
        return waited if self.masks_reset_rows else waited | ended

    def shielded(self) -> contextlib.AbstractContextManager[None]:
        """Protects processes of environments from signals to the whole job.

        A terminal sends SIGINT to all processes, and a batch system SIGTERM:
        finishing a round after that needs the environments.
        """
        return contextlib.nullcontext()

    @abc.abstractmethod
    def step_envs(self, action: Tree[np.ndarray]) -> Step:
        """Steps the environments themselves, and sets `pending_reset`.

        Args:
            action: See `step`.

        Returns:
            See `step`.
        """

    def reset_envs(self, seed: int | None) -> Any:
        """Resets the environments themselves, and checks the observation.

        It sets `pending_reset` if some rows wait.

        Args:
            seed: See `reset`.

        Returns:
            See `reset`.
        """
        if seed is not None:
            seed_layers(self.env, seed)
        returned = self.env.reset(seed=seed)
        self._checks.check_reset(returned, in_range=self.resets == 0)
        return self._to_observation(returned[0])

    def close(self) -> None:
        """Closes the environment, and ends processes that do not close."""
        self.env.close()

    def _fail(self, error: BaseException, doing: str) -> None:
        """Adds the environment and the step to an error."""
        failed = self._culprits(error)
        which = f"one of the {self.num_envs} environments"
        if failed is not None:
            which = f"environment {', '.join(map(str, np.flatnonzero(failed)))}"
        error.add_note(f"In {doing} of {which} of {self.name}.")

    def _culprits(self, error: BaseException) -> np.ndarray | None:
        """Returns the environments that raised an error, `[B]`, if known."""
        return None

    def methods(self, *names: str) -> list[Any]:
        """Returns methods of one of the environments, None for missing ones.

        They must not depend on the state of the environment: those of other
        processes are not asked, and one more is made here.
        """
        layers = [self._one()]
        while layers[-1] is not layers[-1].unwrapped:
            layers.append(layers[-1].env)
        return [
            next((getattr(e, name) for e in layers if hasattr(e, name)), None)
            for name in names
        ]

    def _one(self) -> Any:
        """Returns one of the environments, in this process."""
        inner = self.env.unwrapped
        if isinstance(inner, AsyncVectorEnv):
            return inner.env_fns[0]()
        return inner.envs[0] if isinstance(inner, SyncVectorEnv) else self.env

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
        """
        self.pending_reset = np.array(state["pending_reset"], np.bool_)
        self.resets = int(state["resets"])

    def _cast_action(self, spec: ArraySpec, action: np.ndarray) -> np.ndarray:
        """Casts one array of an action, always to a copy.

        Environments may change it.
        """
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


class TimedEnv:
    """Environments whose steps and resets are a section of a stopwatch.

    It wraps the adapter only while time is measured: `step` is the hottest
    call of all.
    """

    def __init__(self, env: VectorEnvAdapter, stopwatch: Stopwatch) -> None:
        self._env = env
        self._stopwatch = stopwatch

    def step(self, action: Tree[np.ndarray]) -> Step:
        """Takes one step in every environment."""
        # A `with` block would take four times as long.
        left = self._stopwatch.switch("environment")
        try:
            return self._env.step(action)
        finally:
            self._stopwatch.switch(left)

    def reset(self, seed: int | None = None) -> Any:
        """Starts a new episode in every environment."""
        with self._stopwatch.section("environment"):
            return self._env.reset(seed=seed)

    def __getattr__(self, name: str) -> Any:
        """Returns everything else as the adapter has it."""
        return getattr(self._env, name)


class EnvironmentChecks:
    """Compares the return values of an environment with its declarations.

    Each method raises a `MismatchError` if something does not fit.

    Args:
        name: str. Name of the environment in messages.
        observation_space: `gymnasium.Space` of one environment.
        leading: tuple of ints. Leading dimensions before the shape of one
            observation: `(B,)`, or `()` for a single environment.
    """

    def __init__(
        self,
        name: str,
        observation_space: Space[Any],
        leading: tuple[int, ...],
    ) -> None:
        self._name = name
        self._space = observation_space
        self._spec = spaces.observation_spec(observation_space)
        self._leading = leading

    def check_reset(self, returned: object, in_range: bool) -> None:
        """Checks that a reset returned `(observation, info)`."""
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise MismatchError(
                f"Expected (observation, info) from `reset` of {self._name}. "
                f"Received: {_words(returned)}"
            )
        arrays = self.check_observation(returned[0])
        if in_range:
            self._check_range(arrays)

    def check_step(self, returned: object) -> None:
        """Checks a step and its observation."""
        if not isinstance(returned, tuple) or len(returned) != 5:
            raise MismatchError(
                "Expected five values, (observation, reward, terminated, "
                f"truncated, info), from `step` of {self._name}. "
                f"Received: {_words(returned)}"
            )
        self._check_range(self.check_observation(returned[0]))
        # Kinds of the dtypes of numbers, and of bools.
        for key, value, kinds in (
            ("reward", returned[1], "fiub"),
            ("terminated", returned[2], "biu"),
            ("truncated", returned[3], "biu"),
        ):
            array = np.asarray(value)
            # [1] from one environment passes: many rewards are like that.
            fits = array.shape == self._leading or (
                not self._leading and array.size == 1
            )
            if not fits or array.dtype.kind not in kinds:
                raise MismatchError(
                    f"Expected `{key}` of shape {self._leading} from "
                    f"{self._name}, numbers or bools. Received: {key} of shape "
                    f"{array.shape} and dtype {array.dtype}"
                )

    def check_observation(self, observation: object) -> Any:
        """Checks the form of an observation, its shapes and kinds of dtypes.

        Args:
            observation: A tree of arrays `[*leading, ...]`.
        """
        try:
            arrays = map_leaves(
                lambda _, each: np.asarray(each), self._spec, observation
            )
        except (LookupError, TypeError, ValueError) as error:
            raise MismatchError(
                "Expected an observation as in "
                f"{spaces.describe(self._space)} from {self._name}. "
                f"Received: {_words(observation)}"
            ) from error
        specs = dict(named_leaves(self._spec))
        for path, array in named_leaves(arrays):
            spec = specs[path]
            shape = (*self._leading, *spec.shape)
            if array.shape != shape or not np.can_cast(
                array.dtype, spec.dtype, "same_kind"
            ):
                raise MismatchError(
                    f"Expected {f'observation {path}'.rstrip()} of shape "
                    f"{shape} and dtype {spec.dtype} as in "
                    f"{spaces.describe(self._space)} from {self._name}. "
                    f"Received: shape {array.shape} and dtype {array.dtype}"
                )
        return arrays

    def _check_range(self, arrays: Any) -> None:
        """Raises an error if numbers lie far outside of their space.

        Numbers that are not finite pass: they are checked elsewhere.
        """
        leaves = dict(named_leaves(spaces.space_tree(self._space)))
        for path, array in named_leaves(arrays):
            # The width between bounds near the largest float overflows.
            with np.errstate(invalid="ignore", over="ignore"):
                low, high, margin = _bounds(leaves[path])
                outside = (array < low - margin) | (array > high + margin)
            outside = outside & np.isfinite(array)
            if outside.any():
                where = tuple(int(index) for index in np.argwhere(outside)[0])
                raise MismatchError(
                    f"Expected {f'observation {path}'.rstrip()} from "
                    f"{self._name} in its space, {leaves[path]}. Received: "
                    f"{array[where]} at {where}. If the environment is right, "
                    "correct its `observation_space`"
                )


def _bounds(space: Any) -> tuple[Any, Any, Any]:
    """Returns the bounds of one array, and how far outside it may lie."""
    low, high = spaces.bounds(space)
    if not isinstance(space, gymnasium.spaces.Box):
        return low, high, 0
    low, high = low.astype(np.float64), high.astype(np.float64)
    margin = _MOST_WIDTHS * np.maximum(high - low, 1.0)
    is_bounded = np.isfinite(low) & np.isfinite(high)
    return low, high, np.where(is_bounded, margin, np.inf)


def _words(value: object) -> str:
    """Describes a value for messages."""
    if isinstance(value, tuple):
        kinds = ", ".join(type(each).__name__ for each in value)
        return f"a tuple of {len(value)}, ({kinds})"
    keys = f" of {sorted(value)}" if isinstance(value, dict) else ""
    return f"a {type(value).__name__}{keys}"


#: An environment as users pass it; see `keras_rl2.envs.adapt`.
GivenEnv: TypeAlias = Maker | GymnasiumEnv | VectorEnvAdapter | Games


def seed_layers(env: GymnasiumEnv, seed: int) -> None:
    """Seeds `np_random` and the spaces of an environment and its wrappers.

    Gymnasium's `reset` seeds the innermost environment only, and only once its
    own `reset` is reached: neither draws of wrappers from `np_random` before
    that, nor draws from any spaces, depend on the seed.

    In a vector environment, environment i gets `seed + i`. In the processes of
    an `AsyncVectorEnv`, only `np_random` is seeded.

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
            words = np.random.SeedSequence((seed, 1 + place)).generate_state(1)
            space.seed(int(words[0]))
    inner = env.unwrapped
    if isinstance(inner, SyncVectorEnv):
        for index, each in enumerate(inner.envs):
            seed_layers(each, seed + index)
    elif isinstance(inner, AsyncVectorEnv):
        seeds = range(seed, seed + inner.num_envs)
        drawing = [np.random.default_rng((each, 0)) for each in seeds]
        inner.set_attr("np_random", drawing)
    else:
        # Some environments have it as a property that cannot be set.
        with contextlib.suppress(AttributeError):
            # The pair gives another stream than a reset with the seed.
            inner.np_random = np.random.default_rng((seed, 0))


def _spaces(env: GymnasiumEnv | None) -> Iterator[Space[Any]]:
    """Yields the spaces of each layer, from the outermost inwards."""
    names = ("action_space", "observation_space")
    while env is not None:
        for name in (*names, *(f"single_{each}" for each in names)):
            space = getattr(env, name, None)
            if isinstance(space, Space):
                yield space
        env = getattr(env, "env", None) if env is not env.unwrapped else None


def _single(env: Any) -> Any:
    """Returns the first environment of a `SyncVectorEnv` without a spec."""
    inner = getattr(env, "unwrapped", env)
    without_spec = getattr(env, "spec", None) is None
    if without_spec and isinstance(inner, SyncVectorEnv):
        return inner.envs[0]
    return env
