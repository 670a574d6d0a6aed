"""The environments of the library that run within a graph, by their ids."""

import importlib
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any
from typing import TypeAlias

from keras_rl2.envs.graph.graph_env import GraphEnv

#: An id, an environment, or a function that makes one.
GivenGraphEnv: TypeAlias = str | GraphEnv | Callable[..., GraphEnv]

# Module and class by id: few of them are imported.
_BY_ID = {
    "Acrobot-v1": ("classic_control", "Acrobot"),
    "CartPole-v1": ("classic_control", "CartPole"),
    "Catch-v0": ("small_tasks", "Catch"),
    "MemoryChain-v0": ("small_tasks", "MemoryChain"),
    "MinAtar/Asterix-v1": ("minatar_asterix", "Asterix"),
    "MinAtar/Breakout-v1": ("minatar_breakout", "Breakout"),
    "MinAtar/Freeway-v1": ("minatar_freeway", "Freeway"),
    "MinAtar/Seaquest-v1": ("minatar_seaquest", "Seaquest"),
    "MinAtar/SpaceInvaders-v1": ("minatar_space_invaders", "SpaceInvaders"),
    "MountainCar-v0": ("classic_control", "MountainCar"),
    "MountainCarContinuous-v0": ("classic_control", "ContinuousMountainCar"),
    "Pendulum-v1": ("classic_control", "Pendulum"),
    "keras_rl2/GaussianBandit-v0": ("small_tasks", "GaussianBandit"),
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

    Args:
        env: str, `GraphEnv` or Callable. An id, an environment, or a function
            that makes one, e.g. its class.
        env_kwargs: Mapping or None. Arguments of the class or function.
            Defaults to `None`.

    Returns:
        `GraphEnv`.

    Raises:
        ValueError: If there is no such id, or no environment is made.

    Example:

    >>> make_graph_env("CartPole-v1").max_episode_steps
    500
    """
    given = env
    if isinstance(env, str):
        if env not in _BY_ID:
            raise ValueError(
                f"Expected one of {graph_env_ids()}, or a `GraphEnv` of your "
                f"own. Received: env={env!r}"
            )
        module, name = _BY_ID[env]
        env = getattr(
            importlib.import_module(f"keras_rl2.envs.graph.{module}"), name
        )
    if callable(env) and not isinstance(env, GraphEnv):
        env = env(**(env_kwargs or {}))
    elif env_kwargs:
        raise ValueError(
            "Expected `env_kwargs` with an id, a class or a function, of which "
            f"the environment is made. Received: env={given!r}"
        )
    if not isinstance(env, GraphEnv):
        raise ValueError(
            "Expected an id, a `GraphEnv`, or a function that makes one. "
            f"Received: env={given!r}"
        )
    return env
