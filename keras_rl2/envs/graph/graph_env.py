"""Environments that run within a graph: their interface, and their ids."""

import abc
import pkgutil
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from typing import TypeAlias

import gymnasium

from keras_rl2.basics.shapes import Tensor
from keras_rl2.spaces.trees import Tree

#: A tree of tensors of fixed shapes and dtypes.
State: TypeAlias = Tree[Tensor]

#: State, observation, reward, terminated and truncated.
Outcome: TypeAlias = tuple[
    State, Tree[Tensor], Tensor, Tensor | bool, Tensor | bool
]


class GraphEnv(abc.ABC):
    """An environment of pure functions of `keras.ops`.

    The functions are about one environment: `keras_rl2.envs.GraphVectorEnv`
    runs them for many at once, ends episodes at the time limit and begins new
    ones. An object holds settings only, and never changes.

    A function may not branch on the value of a tensor, for example by `if`: use
    `keras.ops.where`. Random numbers come from the given seed, by the functions
    of `keras_rl2.envs.graph.random_numbers`.

    Attributes:
        observation_space: `gymnasium.Space` of one environment.
        action_space: `gymnasium.Space` of one environment.
        max_episode_steps: int or None. Time limit, after which an episode is
            truncated. Defaults to `None`.

    Example:

    >>> import keras_rl2 as rl
    >>> import numpy as np
    >>> from keras import ops
    >>> from keras_rl2.envs.graph import random_numbers
    >>> class Walk(rl.envs.GraphEnv):
    ...     observation_space = gymnasium.spaces.Box(-9.0, 9.0, (1,))
    ...     action_space = gymnasium.spaces.Discrete(2)
    ...     max_episode_steps = 20
    ...     def reset(self, seed):
    ...         position = random_numbers.uniform(seed, (1,), -1.0, 1.0)
    ...         return position, position
    ...     def step(self, state, action, seed):
    ...         position = state + ops.where(action == 1, 1.0, -1.0)
    ...         far = ops.abs(position[0]) > 5.0
    ...         return position, position, -ops.abs(position[0]), far, False
    >>> env = rl.envs.GraphVectorEnv(Walk, num_envs=3)
    >>> observation, info = env.reset(seed=0)
    >>> observation.shape
    (3, 1)
    """

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    max_episode_steps: int | None = None

    @abc.abstractmethod
    def reset(self, seed: Tensor) -> tuple[State, Tree[Tensor]]:
        """Begins an episode.

        Args:
            seed: `[2]` uint32. The only source of random numbers.

        Returns:
            The state, a tree of tensors of any shapes and dtypes, which are
            the same at each step; and the first observation.
        """

    @abc.abstractmethod
    def step(self, state: Any, action: Any, seed: Tensor) -> Outcome:
        """Takes one step.

        Args:
            state: As returned by `reset` or by the last step.
            action: A member of the action space, as tensors; integers are
                int32.
            seed: `[2]` uint32. The only source of random numbers.

        Returns:
            The next state, the observation, the reward (a scalar), and whether
            the episode is terminated or truncated. The time limit
            `max_episode_steps` is counted elsewhere.
        """


#: An id, an environment, or a function that makes one.
GivenGraphEnv: TypeAlias = str | GraphEnv | Callable[..., GraphEnv]

# Module and class by id: few of them are imported.
_BY_ID = {
    "Acrobot-v1": "classic_control:Acrobot",
    "CartPole-v1": "classic_control:CartPole",
    "Catch-v0": "small_tasks:Catch",
    "MemoryChain-v0": "small_tasks:MemoryChain",
    "MinAtar/Asterix-v1": "minatar:Asterix",
    "MinAtar/Breakout-v1": "minatar:Breakout",
    "MountainCar-v0": "classic_control:MountainCar",
    "MountainCarContinuous-v0": "classic_control:ContinuousMountainCar",
    "Pendulum-v1": "classic_control:Pendulum",
}


def graph_env_ids() -> list[str]:
    """Returns the ids that `make_graph_env` knows.

    Example:

    >>> "CartPole-v1" in graph_env_ids()
    True
    """
    return sorted(_BY_ID)


def make_graph_env(
    env: GivenGraphEnv, env_kwargs: Mapping[str, Any] | None = None
) -> GraphEnv:
    """Makes an environment that runs within a graph.

    Example:

    >>> make_graph_env("CartPole-v1").max_episode_steps
    500
    """
    made: Any = env
    if isinstance(env, str):
        if env not in _BY_ID:
            raise ValueError(
                f"Expected one of {graph_env_ids()}, or a `GraphEnv` of your "
                f"own. Received: env={env!r}"
            )
        made = pkgutil.resolve_name(f"keras_rl2.envs.graph.{_BY_ID[env]}")
    if callable(made) and not isinstance(made, GraphEnv):
        made = made(**(env_kwargs or {}))
    if not isinstance(made, GraphEnv) or (env_kwargs and made is env):
        raise ValueError(
            "Expected an id, a `GraphEnv`, or a function that makes one and "
            f"takes `env_kwargs`. Received: env={env!r}, "
            f"env_kwargs={env_kwargs}"
        )
    return made
