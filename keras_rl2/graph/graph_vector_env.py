"""Many environments of pure functions, stepped by one call of TensorFlow."""

import functools
import json
import pickle
import weakref
from collections.abc import Hashable
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

import gymnasium
import numpy as np
import tensorflow as tf
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from keras import ops

from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.direct_call import on_device
from keras_rl2.basics.direct_call import present_device
from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.graph import random_numbers
from keras_rl2.envs.graph.graph_env import GivenGraphEnv
from keras_rl2.envs.graph.graph_env import GraphEnv
from keras_rl2.envs.graph.graph_env import State
from keras_rl2.envs.graph.graph_env import make_graph_env
from keras_rl2.envs.gymnasium_vector_env import SameStepEnv
from keras_rl2.graph.graph_env_checks import action_dtypes
from keras_rl2.graph.graph_env_checks import check_graph_env
from keras_rl2.spaces.space_configs import space_to_config
from keras_rl2.spaces.supported import observation_spec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves


class Episodes(NamedTuple):
    """B environments between two steps, as tensors.

    Attributes:
        state: `[B, ...]`. State of each environment.
        observation: `[B, ...]`. Observations to act on next.
        elapsed: `[B]` int32. Steps of the episodes so far.
        keys: `[B, 2]` uint32. Seeds of the environments.
        steps: Scalar int32. Steps since the seeds were set.
    """

    state: State
    observation: Tree[Tensor]
    elapsed: Tensor
    keys: Tensor
    steps: Tensor


class Transition(NamedTuple):
    """One step of B environments.

    Attributes:
        observation: `[B, ...]`. Observations after the step, before new
            episodes begin.
        reward: `[B]` float32.
        terminated: `[B]` bool.
        truncated: `[B]` bool.
    """

    observation: Tree[Tensor]
    reward: Tensor
    terminated: Tensor
    truncated: Tensor


# One environment is often made many times, and is part of several programs.
# Tracing it takes a second.
_PROGRAMS: weakref.WeakValueDictionary[tuple[Any, ...], Any] = (
    weakref.WeakValueDictionary()
)


class GraphEnvAdapter(SameStepEnv):
    """A `GraphVectorEnv`, from which datasets take whole rounds."""

    @property
    def source_kind(self) -> type[Any]:
        """Class of the source of a dataset's steps."""
        # Other code that steps the environments needs no agent.
        from keras_rl2.graph.graph_source import GraphSource

        return GraphSource


class GraphVectorEnv(gymnasium.vector.VectorEnv[Any, Any, Any]):
    """Many `GraphEnv` at once, which are also a Gymnasium vector environment.

    A dataset over it collects and updates in one program: nothing passes
    between Python and TensorFlow within a round. Other code steps it as any
    `gymnasium.vector.VectorEnv`, with `AutoresetMode.SAME_STEP`.

    Args:
        env: str, `GraphEnv` or Callable. An id, such as `"CartPole-v1"`, an
            environment, or a function that makes one.
        num_envs: int. Number of environments, B. Defaults to `1`.
        env_kwargs: dict or None. Arguments of the environment's class or
            function. Defaults to `None`.

    Attributes:
        graph_env: `GraphEnv`. The functions.
        episodes: tree of `tf.Variable`. Its present `Episodes`.

    Raises:
        ValueError: If there is no such environment, or its functions do not
            keep the promises of `GraphEnv`; see `check_graph_env`.

    Example:

    >>> env = GraphVectorEnv("CartPole-v1", num_envs=64)
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(
    ...     env.action_space.sample())
    >>> observation.shape, reward.sum()
    ((64, 4), np.float32(64.0))
    """

    adapter_kind = GraphEnvAdapter

    def __init__(
        self,
        env: GivenGraphEnv,
        num_envs: int = 1,
        *,
        env_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        check_positive(num_envs=num_envs)
        self.graph_env: GraphEnv = make_graph_env(env, env_kwargs)
        # It takes longer than the rest, and tests of the library check its own.
        if not type(self.graph_env).__module__.startswith("keras_rl2."):
            check_graph_env(self.graph_env)
        self.num_envs = num_envs
        # Stands for settings that cannot be compared.
        self._identity = object()
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space = self.graph_env.observation_space
        self.single_action_space = self.graph_env.action_space
        self.observation_space = batch_space(
            self.single_observation_space, num_envs
        )
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._observed = observation_spec(self.single_observation_space)
        self._action_dtypes = action_dtypes(self.single_action_space)
        # These are not the methods themselves: TensorFlow tells functions apart
        # by their code, and would warn of retracing with many environments.
        kind = self.kind
        self._begin, self._advance = (
            _PROGRAMS.setdefault(
                (kind, each.__name__),
                tf.function(functools.partial(each), autograph=False),
            )
            for each in (self.begin, self._advanced)
        )
        begun = self._begin(_keys(0, num_envs))
        self._dtypes = map_leaves(lambda each: each.dtype, tuple(begun))
        self._hold(begun)
        self._has_begun = False

    @property
    def name(self) -> str:
        """The name of the environment in messages."""
        return type(self.graph_env).__name__

    @property
    def kind(self) -> tuple[Any, ...]:
        """All that the functions depend on; equal if they are the same."""
        spaces = (self.single_observation_space, self.single_action_space)
        attributes = {
            name: value
            for name, value in vars(self.graph_env).items()
            if all(value is not each for each in spaces)
        }
        try:
            settings: Hashable = pickle.dumps(attributes)
        except Exception:
            settings = self._identity
        described = json.dumps([space_to_config(each) for each in spaces])
        return type(self.graph_env), self.num_envs, described, settings

    def begin(self, keys: Tensor) -> Episodes:
        """Begins new episodes everywhere.

        Args:
            keys: `[B, 2]` uint32. A seed for each environment.

        Returns:
            `Episodes`.
        """
        state, observation = ops.vectorized_map(self._reset_one, keys)
        zeros = ops.zeros((self.num_envs,), "int32")
        return Episodes(state, observation, zeros, keys, ops.zeros((), "int32"))

    def advance(
        self, episodes: Episodes, action: Tree[Tensor]
    ) -> tuple[Episodes, Transition]:
        """Takes a step in each environment, and begins new episodes.

        Args:
            episodes: `Episodes`.
            action: `[B, ...]`. Members of the action space.

        Returns:
            The episodes after the step, and the step itself.
        """
        action = map_leaves(
            lambda dtype, each: ops.cast(each, dtype),
            self._action_dtypes,
            action,
        )
        return self._advance(episodes, action)

    def _advanced(
        self, episodes: Episodes, action: Tree[Tensor]
    ) -> tuple[Episodes, Transition]:
        """Takes a step in each environment, as a function to be traced."""
        # The seed of the first reset, that of the number 0, is never used.
        numbers = 2 * episodes.steps + np.array([1, 2], np.int32)
        # [B, 2] -> [B, 1, 2] -> [B, 2, 2], of the step and of a reset.
        seeds = random_numbers.fold_in(episodes.keys[:, None], numbers)
        state, observation, elapsed, step = ops.vectorized_map(
            self._advance_one,
            (episodes.state, episodes.elapsed, action, seeds),
        )
        return (
            Episodes(
                state, observation, elapsed, episodes.keys, episodes.steps + 1
            ),
            Transition(*step),
        )

    def _reset_one(self, key: Tensor) -> tuple[State, Tree[Tensor]]:
        """Begins an episode in one environment."""
        state, observation = self.graph_env.reset(
            random_numbers.fold_in(key, 0)
        )
        state = map_leaves(ops.convert_to_tensor, state)
        return state, self._stored(observation)

    def _advance_one(self, arguments: Any) -> Any:
        """Takes a step in one environment, and begins a new episode."""
        state, elapsed, action, seeds = arguments
        after, observation, reward, terminated, truncated = self.graph_env.step(
            state, action, seeds[0]
        )
        elapsed = elapsed + 1
        terminated = ops.cast(terminated, "bool")
        truncated = ops.cast(truncated, "bool")
        limit = self.graph_env.max_episode_steps
        if limit is not None:
            truncated = truncated | (elapsed >= limit)
        ended = terminated | truncated
        fresh, first = self.graph_env.reset(seeds[1])
        observation = self._stored(observation)

        def chosen(new: Tensor, old: Tensor) -> Tensor:
            return ops.where(ended, new, old)

        return (
            map_leaves(chosen, fresh, after),
            map_leaves(chosen, self._stored(first), observation),
            ops.where(ended, 0, elapsed),
            (observation, ops.cast(reward, "float32"), terminated, truncated),
        )

    def _stored(self, observation: Tree[Tensor]) -> Any:
        """Converts an observation to the dtypes of its space."""
        return map_leaves(
            lambda spec, each: ops.cast(each, spec.dtype),
            self._observed,
            observation,
        )

    def reset(
        self,
        *,
        seed: int | list[int] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begins new episodes everywhere; see Gymnasium.

        Args:
            seed: int, list of int or None. Seed of the first environment, the
                next one's is larger by 1, or a seed for each of them. Defaults
                to `None`: random at first, then derived from the last seeds.
            options: Ignored. Defaults to `None`.

        Returns:
            Observations `[B, ...]`, and an empty dict.
        """
        keys = self._next_keys() if seed is None else _keys(seed, self.num_envs)
        self._has_begun = True
        self.write(self._begin(keys))
        return self.observations(), {}

    def observations(self) -> Any:
        """Returns the observations to act on next, arrays `[B, ...]`."""
        return map_leaves(
            lambda each, dtype: _array(each).astype(
                dtype.as_numpy_dtype, copy=False
            ),
            self.episodes.observation,
            Episodes(*self._dtypes).observation,
        )

    def step(
        self, actions: Any
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Takes a step in each environment; see Gymnasium.

        Args:
            actions: `[B, ...]`. Members of the action space.

        Returns:
            Observations `[B, ...]`, rewards `[B]` float32, terminated and
            truncated `[B]` bool, and a dict with `final_obs` and `_final_obs`
            where an episode has ended.
        """
        final, *outcome = self._step(map_leaves(tf.constant, actions))
        reward, terminated, truncated = map(_array, outcome)
        ended = terminated | truncated
        info: dict[str, Any] = {}
        if ended.any():
            info = {
                "final_obs": map_leaves(_array, final),
                "_final_obs": ended,
            }
        return self.observations(), reward, terminated, truncated, info

    def _stepped(self, actions: Any) -> Transition:
        """Takes a step and keeps the episodes, as a function to be traced."""
        episodes, transition = self.advance(self.read(), actions)
        self.write(episodes)
        return transition

    def read(self) -> Episodes:
        """Returns the present episodes, in the graph."""
        return Episodes(
            *map_leaves(tf.cast, tuple(self.episodes), self._dtypes)
        )

    def write(self, episodes: Episodes) -> None:
        """Keeps episodes, in the graph.

        Args:
            episodes: `Episodes`. As returned by `begin` or `advance`.
        """
        for variable, value in zip(
            self.variables, leaves(tuple(episodes)), strict=True
        ):
            variable.assign(tf.cast(value, variable.dtype))

    def place(self) -> None:
        """Moves the episodes to the device on which operations run now."""
        if present_device() not in (None, self.variables[0].device):
            self._hold(self.episodes)

    def _hold(self, episodes: Episodes) -> None:
        """Makes the variables that hold episodes, and the step that uses them.

        Args:
            episodes: `Episodes`. The first ones.
        """
        self.episodes = Episodes(*map_leaves(_variable, tuple(episodes)))
        step = tf.function(
            functools.partial(self._stepped), autograph=False, jit_compile=True
        )
        self._step = on_device(present_device(), step)

    @property
    def variables(self) -> list[tf.Variable]:
        """The variables that hold the episodes."""
        return leaves(tuple(self.episodes))

    def _next_keys(self) -> Any:
        """Returns seeds where none is given."""
        if not self._has_begun:
            drawn = seeds.generator(None).integers(2**31)
            return _keys(int(drawn), self.num_envs)
        # Nothing else is derived from the largest number.
        keys = ops.convert_to_tensor(self.episodes.keys)
        return random_numbers.fold_in(keys, 2**32 - 1)

    def get_state(self) -> dict[str, Any]:
        """Returns the state of the environments, as plain data."""
        return {
            "episodes": list(map(_array, self.variables)),
            "has_begun": self._has_begun,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state returned by `get_state`.

        Args:
            state: dict, as returned by `get_state`.
        """
        for variable, value in zip(
            self.variables, state["episodes"], strict=True
        ):
            variable.assign(value)
        self._has_begun = state["has_begun"]


def _keys(seed: int | list[int], num_envs: int) -> Tensor:
    """Returns a seed `[2]` for each environment."""
    if isinstance(seed, int | np.integer):
        seed = [int(seed) + index for index in range(num_envs)]
    if len(seed) != num_envs:
        raise ValueError(
            f"Expected a seed for each of {num_envs} environments. Received: "
            f"{len(seed)} seeds"
        )
    words = [divmod(each % 2**64, 2**32) for each in seed]
    return ops.convert_to_tensor(np.array(words, np.uint32))


def _variable(value: Any) -> tf.Variable:
    """Returns a variable that can be on a GPU, which none of int32 can."""
    value = tf.identity(value)
    return tf.Variable(
        tf.cast(value, "int64") if value.dtype == "int32" else value
    )


def _array(value: Any) -> np.ndarray:
    """Returns an array that belongs to the caller."""
    return np.array(value.numpy())
