"""What a dataset sees of an environment, of whatever kind it is."""

import abc
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space

from keras_rl2 import spaces
from keras_rl2.array_spec import ArraySpec
from keras_rl2.trees import Tree
from keras_rl2.trees import map_leaves

#: An array, or a dict or tuple of them.
Observation = Tree[np.ndarray]

# observation, reward, terminated, truncated, final_observation
Step = tuple[Any, np.ndarray, np.ndarray, np.ndarray, Any]


class VectorEnvAdapter(abc.ABC):
    """B environments that are stepped together and reset themselves.

    `as_vector_env` makes one from any environment. There is one subclass for
    each way in which environments report the end of an episode, so that the
    way is chosen once and `step`, the hottest call of all, never asks.

    The letter B stands for the number of environments throughout.

    Args:
        env: The environment itself.
        num_envs: int. B.
        observation_space: `gymnasium.Space` of one environment.
        action_space: `gymnasium.Space` of one environment.

    Attributes:
        env: The environment itself.
        name: str. What it is called in messages.
        num_envs: int. B.
        observation_space: `gymnasium.Space` of one environment.
        action_space: `gymnasium.Space` of one environment.
        observation_spec: tree of `keras_rl2.ArraySpec`. What one
            observation is like.
        masks_reset_rows: bool. True if a step that follows the end of an
            episode is a mere reset and no transition (Gymnasium's NEXT_STEP).
        pending_reset: `[B]` bool. Environments whose next step is such a
            reset. Never changed in place.
        resets: int. How often `reset` was called. A dataset sees by it that
            somebody else, `evaluate` say, has reset the environment.

    Raises:
        ValueError: If a space is not supported.

    Example:

    >>> import gymnasium
    >>> from keras_rl2.envs import as_vector_env
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
        self.observation_spec = spaces.observation_spec(observation_space)
        # One array most often: then its dtype, so that no tree is walked.
        self._dtype = (
            np.dtype(self.observation_spec.dtype)
            if isinstance(self.observation_spec, ArraySpec)
            else None
        )
        self._action_spec = spaces.action_spec(action_space)
        self.pending_reset = np.zeros(num_envs, np.bool_)
        self.resets = 0

    def reset(self, seed: int | None = None) -> Any:
        """Starts a new episode in every environment.

        Args:
            seed: int. Environment i is seeded with `seed + i`, in the way
                of Gymnasium; nothing else is seeded. EnvPool takes its seed in
                `envpool.make` only and ignores this one. Defaults to `None`:
                the random states go on.

        Returns:
            Observation `[B, ...]`, a tree of arrays.

        Raises:
            ValueError: If the observation does not fit its space.
        """
        observation = self._reset(None if seed is None else int(seed))
        self.pending_reset = np.zeros(self.num_envs, np.bool_)
        self.resets += 1
        return observation

    @abc.abstractmethod
    def step(self, action: Any) -> Step:
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
            final_observation)`: what to act on next `[B, ...]`, a tree of
            arrays; float32 `[B]`, bool `[B]`, bool `[B]`; and `None` or a tree
            alike. Where an episode ended, the row of `final_observation` is its
            true last observation (the other rows are valid observations
            without meaning). It is `None` if no episode ended, and always if
            `masks_reset_rows`: then `observation` is the last one itself, and
            the following row of that
            environment is a reset with reward 0 that ends nothing.

        Raises:
            ValueError: If the action has the wrong shape.
        """

    @abc.abstractmethod
    def _reset(self, seed: int | None) -> Any:
        """Resets the environment itself, checking what it returns."""

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    def get_state(self) -> dict[str, Any]:
        """Returns what the adapter itself remembers, not the environments.

        Returns:
            A dictionary with `resets`, an `int`, and `pending_reset`, `[B]`
            bool.
        """
        return {
            "resets": self.resets,
            "pending_reset": self.pending_reset.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave.

        Args:
            state: dict, as returned by `get_state`.

        Raises:
            ValueError: If it belongs to another number of environments, or to
                an environment that reports the end of episodes differently.
        """
        pending_reset = np.array(state["pending_reset"], np.bool_)
        if pending_reset.shape != (self.num_envs,):
            raise ValueError(
                f"Expected the state of {self.num_envs} environments. "
                f"Received: pending_reset={pending_reset}"
            )
        if pending_reset.any() and not self.masks_reset_rows:
            raise ValueError(
                f"Expected no pending reset, since {self.name} resets at once. "
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

    def _to_observation(self, observation: Any) -> Any:
        """Casts an observation, without a copy where that is possible."""
        if self._dtype is not None:
            return np.asarray(observation, self._dtype)
        return map_leaves(_cast, self.observation_spec, observation)

    def _check_observation(
        self, observation: Any, leading: tuple[int, ...]
    ) -> None:
        """Refuses an observation that does not fit its space.

        Args:
            observation: A tree of arrays `[*leading, ...]`.
            leading: tuple of ints. `(B,)`, or `()` for a single one.
        """
        self._check_branch(observation, self.observation_spec, leading, "")

    def _check_branch(
        self, received: Any, expected: Any, leading: tuple[int, ...], path: str
    ) -> None:
        """Refuses what does not fit below a path."""
        where = f"observation{path}"
        if isinstance(expected, ArraySpec):
            self._check_array(received, expected, leading, where)
            return
        kind: type[Any] = tuple if isinstance(expected, tuple) else Mapping
        keys = _keys(expected)
        if not isinstance(received, kind) or _keys(received) != keys:
            raise ValueError(
                f"Expected {where} from {self.name} to be a "
                f"{type(expected).__name__} of {keys}. Received: "
                f"{type(received).__name__} of "
                f"{_keys(received) if isinstance(received, kind) else received}"
            )
        for key in keys:
            self._check_branch(
                received[key], expected[key], leading, f"{path}[{key!r}]"
            )

    def _check_array(
        self,
        received: Any,
        expected: ArraySpec,
        leading: tuple[int, ...],
        where: str,
    ) -> None:
        """Refuses an array of another shape or kind."""
        array = np.asarray(received)
        shape = (*leading, *expected.shape)
        if array.shape == shape and np.can_cast(
            array.dtype, expected.dtype, "same_kind"
        ):
            return
        raise ValueError(
            f"Expected an {where} of shape {shape} and dtype "
            f"{expected.dtype} from {self.name}, whose space is "
            f"{spaces.describe(self.observation_space)}. Received: "
            f"{where} of shape {array.shape} and dtype {array.dtype}"
        )


def _cast(expected: ArraySpec, array: Any) -> np.ndarray:
    """Returns an array of the dtype that is expected."""
    return np.asarray(array, expected.dtype)


def _keys(tree: Any) -> list[Any]:
    """Returns keys or positions of a branch."""
    if isinstance(tree, tuple):
        return [*range(len(tree))]
    return sorted(tree, key=str)


def _name(env: Any) -> str:
    """Returns the id of an environment, or its class's name."""
    env_id = getattr(getattr(env, "spec", None), "id", None)
    if isinstance(env_id, str):
        return env_id
    return type(getattr(env, "unwrapped", env)).__name__
