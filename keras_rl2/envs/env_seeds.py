"""Seeds of an environment that its reset leaves out.

Gymnasium seeds the innermost environment, and that one only once its own
`reset` is reached: neither what a wrapper draws from `np_random` before, nor
what any of them draws from its spaces.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector import SyncVectorEnv
from gymnasium.vector import VectorEnv

from keras_rl2.envs import env_processes


def seed_layers(env: Any, seed: int) -> None:
    """Seeds `np_random` and the spaces of an environment and its wrappers.

    Of several environments, the one of index i gets `seed + i`. Of those in
    processes with a `worker` of their own only `np_random` is reached.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`, which is to be
            reset with the same seed.
        seed: int. At least 0.

    Example:

    >>> def draw(seed):
    ...     env = gymnasium.make("Pendulum-v1")
    ...     seed_layers(env, seed)
    ...     return env.action_space.sample(), env.np_random.normal()
    >>> draw(3) == draw(3)
    True
    """
    inner = env.unwrapped
    _seed_own(env, seed)
    if isinstance(inner, SyncVectorEnv):
        for index, each in enumerate(inner.envs):
            seed_layers(each, seed + index)
    elif env_processes.can_be_asked(inner):
        seeds = [(seed + i,) for i in range(inner.num_envs)]
        env_processes.ask(inner, seed_layers, seeds)
    elif isinstance(inner, AsyncVectorEnv):
        drawing = [_generator(seed + i) for i in range(inner.num_envs)]
        inner.set_attr("np_random", drawing)
    else:
        # Some have it as a property that cannot be set.
        with contextlib.suppress(AttributeError):
            inner.np_random = _generator(seed)


def _seed_own(env: Any, seed: int) -> None:
    """Seeds the spaces of an environment and of its wrappers, each once."""
    known: set[int] = set()
    for place, space in enumerate(_spaces(env)):
        if id(space) not in known:
            known.add(id(space))
            space.seed(_space_seed(seed, 1 + place))


def _spaces(env: Any) -> Iterator[gymnasium.Space[Any]]:
    """Yields the spaces of each layer, from the outermost inwards."""
    single = ("single_action_space", "single_observation_space")
    names = ("action_space", "observation_space")
    while env is not None:
        for name in (*names, *single) if isinstance(env, VectorEnv) else names:
            space = getattr(env, name, None)
            if isinstance(space, gymnasium.Space):
                yield space
        env = getattr(env, "env", None) if env is not env.unwrapped else None


def _generator(seed: int) -> np.random.Generator:
    """Returns what draws other numbers than a reset with the seed does."""
    return np.random.default_rng((seed, 0))


def _space_seed(seed: int, place: int) -> int:
    """Returns the seed of one of the spaces."""
    return int(np.random.SeedSequence((seed, place)).generate_state(1)[0])
