"""Recording a dataset by playing in an environment."""

import operator
import os
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import check_seed
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.policy_actor import Actions
from keras_rl2.collecting.random_actor import MaskedRandomActor
from keras_rl2.collecting.random_actor import random_actions
from keras_rl2.collecting.random_actor import random_actor
from keras_rl2.collecting.random_actor import steps_for_environments
from keras_rl2.collecting.trajectory import Trajectory
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
from keras_rl2.policies.agent_protocols import Policy
from keras_rl2.spaces.supported import action_spec
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

# Maximum steps of each environment per collection.
_MOST_STEPS = 1024


@refusing_unknown
def record(
    policy: Policy | Callable[[Any], Any] | str | None,
    env: GivenEnv,
    steps: int,
    path: str | os.PathLike[str] | None = None,
    seed: int | None = 0,
    *,
    deterministic: bool = False,
    num_envs: int = 1,
    env_kwargs: Mapping[str, Any] | None = None,
    wrappers: Sequence[EnvWrapper] = (),
    batch_size: int = 256,
    n_step: int = 1,
    updates_per_epoch: int = 1000,
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
        batch_size: int. Transitions of one minibatch. Defaults to `256`.
        n_step: int. Rewards that a transition adds up before it bootstraps.
            Defaults to `1`.
        updates_per_epoch: int. Updates of one Keras epoch. Defaults to `1000`.

    Returns:
        `OfflineDataset` of the recorded steps.

    Raises:
        ValueError: If the agent does not fit the environment, an action is
            not in its space, an observation or reward is not finite, or the
            folder is not empty.

    Example:

    >>> import keras_rl2 as rl
    >>> rl.record("random", "CartPole-v1", 500, seed=0)
    <OfflineDataset: ... episodes, 500 transitions, return ... (... to ...)>
    """
    check_positive(steps=steps, num_envs=num_envs)
    check_flag(deterministic=deterministic)
    check_seed(seed)
    if path is not None:
        check_new(Path(path))
    made = as_vector_env(
        env, num_envs, env_kwargs=env_kwargs, wrappers=wrappers
    )
    try:
        player = _Player(policy, made, seed, deterministic)
        episodes = episodes_of_arrays(
            _play(player, made, steps),
            f"the recording of {made.name}",
            made.observation_space,
            made.action_space,
        )
        recorded = OfflineDataset(
            episodes,
            batch_size,
            n_step,
            seed,
            updates_per_epoch=updates_per_epoch,
        )
        if path is not None:
            spec = getattr(made.env, "spec", None)
            write_minari(episodes, Path(path), spec)
    finally:
        if is_maker(env):
            made.close()
    return recorded


class _Player:
    """Acts by an agent, by a function, or at random."""

    def __init__(
        self,
        policy: Any,
        env: VectorEnvAdapter,
        seed: int | None,
        deterministic: bool,
    ) -> None:
        env_seed, acting = seeds.sequence(seed).spawn(2)
        self.env_seed = int(env_seed.generate_state(1)[0] >> 2)
        self.head = policy_head(env.action_space)
        self._generator = np.random.default_rng(acting)
        self._num_envs = env.num_envs
        self._agent: Any = None
        self._state: Any = None
        self.actor: Any = random_actor
        if policy is None or policy == "random":
            if is_masked(env.observation_space):
                self.actor = MaskedRandomActor(self.head, self._generator)
        elif hasattr(policy, "sample_action"):
            policy.bind(env.observation_space, env.action_space)
            self.actor = ActorSnapshot(policy, env.num_envs, deterministic)
            self._agent, self.head = policy, policy.policy_head
        elif callable(policy):
            self.actor = _FunctionActor(policy, env, self.head)
        else:
            raise ValueError(
                "Expected an agent, a function from an observation to an "
                f"action, or 'random'. Received: policy={policy!r}"
            )

    @property
    def is_recurrent(self) -> bool:
        """Whether the policy is recurrent."""
        return self._agent is not None and bool(self._agent.initial_state(1))

    def noise(self, horizon: int) -> Any:
        """Returns the noise of the next steps, or their random actions."""
        shape = (horizon, self._num_envs)
        if self.actor is random_actor:
            return random_actions(self.head, self._generator, shape)
        if self._agent is None or self.actor.deterministic:
            return [None] * horizon
        noise, self._state = self._agent.draw_noise(
            self._generator, shape, self._state
        )
        return noise

    def taken(self, trajectory: Trajectory) -> Any:
        """Returns the actions in the environment's form, `[T, B, ...]`."""
        if isinstance(self.actor, _FunctionActor):
            return self.actor.taken()
        return steps_for_environments(self.head, trajectory.action)


class _FunctionActor:
    """A function of one observation, which acts in several environments."""

    def __init__(
        self, function: Callable[[Any], Any], env: VectorEnvAdapter, head: Any
    ) -> None:
        self._function = function
        self._spec = action_spec(env.action_space)
        # In place of the policy's own actions.
        shape = (env.num_envs, *head.action_shape)
        self._none = np.zeros(shape, head.action_dtype)
        self._given: list[Any] = []

    def __call__(self, observation: Tree[np.ndarray], noise: object) -> Actions:
        """Calls the function once for each environment."""
        actions = [
            map_leaves(
                lambda spec, each: np.asarray(each, spec.dtype),
                self._spec,
                self._function(
                    map_leaves(operator.itemgetter(index), observation)
                ),
            )
            for index in range(len(self._none))
        ]
        self._given.append(map_leaves(lambda *each: np.stack(each), *actions))
        return self._none, self._given[-1]

    def taken(self) -> Any:
        """Returns the actions since the last call, `[T, B, ...]`."""
        given, self._given = self._given, []
        return map_leaves(lambda *each: np.stack(each), *given)


def _play(player: _Player, env: VectorEnvAdapter, steps: int) -> dict[str, Any]:
    """Takes the steps, and returns them as arrays `[N, ...]`."""
    horizon = min(-(-steps // env.num_envs), _MOST_STEPS)
    collector = Collector(env, horizon, player.head.format)
    collector.sequence_length = horizon if player.is_recurrent else None
    collector.reset(seed=player.env_seed)
    parts: list[dict[str, Any]] = []
    count = 0
    while count < steps:
        trajectory = collector.collect(player.actor, player.noise(horizon))
        parts.append(_steps(trajectory, player.taken(trajectory)))
        count += int(np.count_nonzero(trajectory.valid))
    joined = map_leaves(lambda *each: np.concatenate(each), *parts)
    return _in_order(joined, steps)


def _steps(trajectory: Trajectory, taken: Tree[np.ndarray]) -> dict[str, Any]:
    """Returns steps with their next observations, `[T, B, ...]`."""
    t, b = np.divmod(trajectory.final_index, trajectory.reward.shape[1])

    def followed(array: np.ndarray, final: np.ndarray) -> np.ndarray:
        following = array[1:].copy()
        following[t, b] = final
        return following

    return {
        "observations": map_leaves(
            lambda array: array[:-1], trajectory.observation
        ),
        "actions": taken,
        "rewards": trajectory.reward,
        "terminations": trajectory.terminated,
        "truncations": trajectory.truncated,
        "next_observations": map_leaves(
            followed, trajectory.observation, trajectory.final_observation
        ),
        "valid": trajectory.valid,
    }


def _in_order(joined: dict[str, Any], steps: int) -> dict[str, Any]:
    """Returns the first steps, one environment after another: `[N, ...]`."""
    t, b = np.nonzero(joined.pop("valid"))
    # The first in time, of all environments together.
    t, b = t[:steps], b[:steps]
    order = np.lexsort((t, b))
    t, b = t[order], b[order]
    record: dict[str, Any] = map_leaves(lambda array: array[t, b], joined)
    record["truncations"] |= np.append(b[1:] != b[:-1], True)
    return record
