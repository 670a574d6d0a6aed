"""Recording a dataset by playing in an environment."""

import itertools
import operator
import os
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.basics import seeds
from keras_rl2.collecting.checks import check_mask
from keras_rl2.collecting.random_actor import MaskedRandomActor
from keras_rl2.collecting.random_actor import random_actions
from keras_rl2.distributions import policy_head
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.adapt import is_maker
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.envs.vector_env import VectorEnvAdapter
from keras_rl2.offline.episodes import episodes_of_arrays
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.offline.sources import check_new
from keras_rl2.offline.sources import write_minari
from keras_rl2.policies.actors import ActorSnapshot
from keras_rl2.policies.agent_protocols import EvaluatedAgent
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

# Steps for which noise and random actions are drawn at once.
_BLOCK = 1024


@arguments.refusing_unknown
def record(
    policy: EvaluatedAgent | Callable[[Any], Any] | str | None,
    env: GivenEnv,
    steps: int,
    path: str | os.PathLike[str] | None = None,
    seed: int | None = 0,
    *,
    deterministic: bool = False,
    num_envs: int = 1,
    env_kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[EnvWrapper] = (),
) -> OfflineDataset:
    """Plays in an environment, and returns the transitions as a dataset.

    Episodes that are unfinished after the last step count as truncated there.
    An agent is not changed: neither its `env_steps` nor its statistics of
    observations.

    Args:
        policy: The acting policy: a `keras_rl2.Agent`, which explores as in
            training unless `deterministic`; a function from an observation to
            an action of the environment; `"random"` or None for uniformly
            random actions.
        env: A `gymnasium.Env`, a `gymnasium.vector.VectorEnv`, an EnvPool
            environment, an id string, or a function that makes a
            `gymnasium.Env`.
        steps: int. Environment steps, of all environments together.
        path: path or None. A new folder to write the dataset to, by Minari;
            None to keep it in memory only. Defaults to `None`.
        seed: int or None. Seeds environments and acting. Defaults to `0`.
        deterministic: bool. Whether an agent takes its most probable actions.
            Defaults to `False`.
        num_envs: int. Environments to make when `env` is an id or a function.
            Defaults to `1`.
        env_kwargs: dict or None. Arguments of an environment passed as an id.
            Defaults to `None`.
        wrappers: sequence of functions from an environment to another one, for
            an environment passed as an id. Defaults to `()`.

    Returns:
        `OfflineDataset` of the recorded steps. For other arguments of it, pass
        its `recorded` to another one.

    Raises:
        ValueError: If the agent does not fit the environment, an action is
            not in its space, an observation or reward is not finite, or the
            folder is not empty.

    Example:

    >>> import keras_rl2 as rl
    >>> rl.record("random", "CartPole-v1", 500, seed=0)
    <OfflineDataset: ... episodes, 500 transitions, mean return ...>
    """
    arguments.check_positive(steps=steps, num_envs=num_envs)
    arguments.check_flag(deterministic=deterministic)
    arguments.check_seed(seed)
    if path is not None:
        check_new(Path(path))
    vector_env = as_vector_env(
        env, num_envs, env_kwargs=env_kwargs, wrappers=wrappers
    )
    try:
        env_seed, acting = seeds.sequence(seed).spawn(2)
        begun = int(env_seed.generate_state(1)[0] >> 2)
        generator = np.random.default_rng(acting)
        act, begin = _actor_of(policy, vector_env, generator, deterministic)
        played = play(vector_env, steps, begun, act, begin)
        episodes = episodes_of_arrays(
            _in_order(played, steps),
            f"the recording of {vector_env.name}",
            vector_env.observation_space,
            vector_env.action_space,
        )
        recorded = OfflineDataset(episodes, seed=seed)
        if path is not None:
            spec = getattr(vector_env.env, "spec", None)
            write_minari(episodes, Path(path), spec)
    finally:
        if is_maker(env):
            vector_env.close()
    return recorded


def play(
    env: VectorEnvAdapter,
    steps: int,
    seed: int,
    act: Callable[[Any], Any],
    begin: Callable[[np.ndarray], None] | None = None,
) -> dict[str, Any]:
    """Takes so many steps, of all environments together.

    Args:
        env: `VectorEnvAdapter`. The environments, B.
        steps: int. The steps to take.
        seed: int. Seeds the environments.
        act: Function from observations `[B, ...]` to the environment's actions.
        begin: Function of `[B]` bool: whose next step begins an episode.
            Defaults to `None`.

    Returns:
        dict of arrays `[T, B, ...]` by the names of `OfflineDataset`, and
        `valid`: whether a step was one, and no reset.
    """
    masked = is_masked(env.observation_space)
    head = policy_head(env.action_space).format
    observation: Any = map_leaves(np.array, env.reset(seed=seed))
    rows: list[dict[str, Any]] = []
    count = 0
    while count < steps:
        resetting = env.pending_reset
        if masked:
            check_mask(head, observation, resetting, env.name, len(rows))
        action = map_leaves(np.array, act(observation))
        after, reward, terminated, truncated, final = env.step(action)
        after = map_leaves(np.array, after)
        ended = terminated | truncated
        rows.append(
            {
                "observations": observation,
                "actions": action,
                "rewards": np.array(reward),
                "terminations": np.array(terminated),
                "truncations": np.array(truncated),
                "next_observations": _followed(after, final, ended),
                "valid": ~resetting,
            }
        )
        if begin is not None:
            begin(env.begins(resetting, ended))
        observation = after
        count += int(np.count_nonzero(~resetting))
    return map_leaves(lambda *each: np.stack(each), *rows)


def _followed(after: Any, final: Any, ended: np.ndarray) -> Any:
    """Returns next observations: the final one where an episode ended."""
    if final is None:
        return after

    def chosen(after: np.ndarray, final: np.ndarray) -> np.ndarray:
        rows = after.copy()
        rows[ended] = final[ended]
        return rows

    return map_leaves(chosen, after, final)


def _actor_of(
    policy: Any,
    env: VectorEnvAdapter,
    generator: np.random.Generator,
    deterministic: bool,
) -> tuple[Callable[[Any], Any], Callable[[np.ndarray], None] | None]:
    """Returns functions that choose actions, and that begin episodes."""
    if policy is None or policy == "random":
        return random_policy(env, generator), None
    if hasattr(policy, "bind"):
        policy.bind(env.observation_space, env.action_space)
        actor = ActorSnapshot(policy.policy, env.num_envs, deterministic)
        noise = _noise(policy, generator, env.num_envs)
        if deterministic:
            noise = itertools.repeat(None)
        return lambda x: actor(x, next(noise))[1], actor.begin
    if not callable(policy):
        raise ValueError(
            "Expected an agent, a function from an observation to an action, "
            f"or 'random'. Received: policy={policy!r}"
        )
    spec = action_spec(env.action_space)

    def act(observation: Tree[np.ndarray]) -> Any:
        actions = [
            policy(map_leaves(operator.itemgetter(index), observation))
            for index in range(env.num_envs)
        ]
        return map_leaves(
            lambda spec, *each: np.array(each, spec.dtype), spec, *actions
        )

    return act, None


def random_policy(
    env: VectorEnvAdapter, generator: np.random.Generator
) -> Callable[[Any], Any]:
    """Returns a function that draws actions, among valid ones with a mask."""
    head = policy_head(env.action_space)
    if is_masked(env.observation_space):
        actor = MaskedRandomActor(head, generator)
        return lambda observation: actor(observation, None)[1]
    actions = itertools.chain.from_iterable(
        random_actions(head, generator, (_BLOCK, env.num_envs))
        for _ in itertools.count()
    )
    return lambda observation: next(actions)[1]


def _noise(agent: Any, generator: Any, num_envs: int) -> Iterator[Any]:
    """Yields the noise of each step, drawn for many steps at once."""
    state = None
    while True:
        noise, state = agent.policy.noise.draw(
            generator, (_BLOCK, num_envs), state
        )
        yield from noise


def _in_order(played: dict[str, Any], steps: int) -> dict[str, Any]:
    """Returns the first steps, one environment after another: `[N, ...]`."""
    t, b = np.nonzero(played.pop("valid"))
    # The first in time, of all environments together.
    t, b = t[:steps], b[:steps]
    order = np.lexsort((t, b))
    t, b = t[order], b[order]
    record: dict[str, Any] = map_leaves(lambda array: array[t, b], played)
    record["truncations"] |= np.append(b[1:] != b[:-1], True)
    return record
