"""Seeding of an environment beyond its reset.

Gymnasium's `reset` seeds the innermost environment only, and only once its own
`reset` is reached: neither draws of wrappers from `np_random` before that, nor
draws from any spaces, depend on the seed.
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
from keras_rl2.envs.env_values import GymnasiumEnv


def seed_layers(env: GymnasiumEnv, seed: int) -> None:
    """Seeds `np_random` and the spaces of an environment and its wrappers.

    In a vector environment, environment i gets `seed + i`. In processes with a
    custom `worker`, only `np_random` is seeded.

    Args:
        env: `gymnasium.Env` or `gymnasium.vector.VectorEnv`, to be reset with
            the same seed.
        seed: int. At least 0.

    Example:

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
        if env_processes.can_be_asked(inner):
            own_seeds = [(each,) for each in seeds]
            env_processes.ask(inner, seed_layers, own_seeds)
        else:
            drawing = [np.random.default_rng((each, 0)) for each in seeds]
            inner.set_attr("np_random", drawing)
    else:
        # Some environments have it as a property that cannot be set.
        with contextlib.suppress(AttributeError):
            # The pair gives another stream than a reset with the seed.
            inner.np_random = np.random.default_rng((seed, 0))


def _spaces(env: GymnasiumEnv | None) -> Iterator[gymnasium.Space[Any]]:
    """Yields the spaces of each layer, from the outermost inwards."""
    single = ("single_action_space", "single_observation_space")
    names = ("action_space", "observation_space")
    while env is not None:
        for name in (*names, *single) if isinstance(env, VectorEnv) else names:
            space = getattr(env, name, None)
            if isinstance(space, gymnasium.Space):
                yield space
        env = getattr(env, "env", None) if env is not env.unwrapped else None
