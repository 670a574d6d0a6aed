"""Recording a dataset by playing in an environment."""

import os
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import check_flag
from keras_rl2.basics.arguments import check_path
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.arguments import check_seed
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.basics.shapes import Tensor
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
from keras_rl2.offline.array_source import ArraySource
from keras_rl2.offline.minari_writing import check_new
from keras_rl2.offline.minari_writing import write_minari
from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.policies.actors import ActorSnapshot
from keras_rl2.policies.policy import Policy
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
    best: float | None = None,
    min_return: float | None = None,
    observation_space: gymnasium.Space[Any] | None = None,
    action_space: gymnasium.Space[Any] | None = None,
    memory_limit: int = 2**29,
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
        best: float or None. Share of the episodes to learn from, over 0 and at
            most 1, those of the highest return; None for all of them. Defaults
            to `None`.
        min_return: float or None. Lowest return of an episode to learn from;
            None for any. Defaults to `None`.
        observation_space: `gymnasium.Space` or None. The space of
            observations; None for that of the source, or else of the agent.
            Defaults to `None`.
        action_space: `gymnasium.Space` or None. The space of actions; None for
            that of the source, or else of the agent. Defaults to `None`.
        memory_limit: int. Bytes of data that are held in memory, apart from a
            minimum of a few steps. Defaults to `2 ** 29`, half a GiB.

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
        check_path(path=path)
        check_new(Path(path))
    made = as_vector_env(
        env, num_envs, env_kwargs=env_kwargs, wrappers=wrappers
    )
    try:
        player = _player(policy, made, seed, deterministic)
        source = ArraySource(
            _play(player, made, steps),
            f"the recording of {made.name}",
            made.observation_space,
            made.action_space,
        )
        if path is not None:
            write_minari(source, Path(path), getattr(made.env, "spec", None))
    finally:
        if is_maker(env):
            made.close()
    return OfflineDataset(
        source,
        batch_size,
        n_step,
        seed,
        updates_per_epoch=updates_per_epoch,
        best=best,
        min_return=min_return,
        observation_space=observation_space,
        action_space=action_space,
        memory_limit=memory_limit,
    )


class _Player:
    """A uniformly random policy, which acts for some steps at a time.

    Args:
        env: `VectorEnvAdapter`. The environment to play in.
        seed: int or None. Seeds the environment and the actions.
    """

    def __init__(self, env: VectorEnvAdapter, seed: int | None) -> None:
        env_seed, acting = seeds.sequence(seed).spawn(2)
        self.env_seed = int(env_seed.generate_state(1)[0] >> 2)
        self.generator = np.random.default_rng(acting)
        self.env = env
        self.head = policy_head(env.action_space)
        #: Whether the policy is recurrent.
        self.is_recurrent = False

    def actor(self) -> Any:
        """Returns the actor for the next steps."""
        if is_masked(self.env.observation_space):
            return MaskedRandomActor(self.head, self.generator)
        return random_actor

    def noise(self, horizon: int) -> Any:
        """Returns the actor's noise for each step."""
        shape = (horizon, self.env.num_envs)
        if is_masked(self.env.observation_space):
            return np.zeros(shape)
        return random_actions(self.head, self.generator, shape)

    def taken(self, trajectory: Trajectory) -> Any:
        """Returns the actions in the environment's form, `[T, B, ...]`."""
        return steps_for_environments(self.head, trajectory.action)


class _AgentPlayer(_Player):
    """An agent with its current weights."""

    def __init__(
        self,
        agent: Policy,
        env: VectorEnvAdapter,
        seed: int | None,
        deterministic: bool,
    ) -> None:
        super().__init__(env, seed)
        agent.bind(env.observation_space, env.action_space)
        self._agent = agent
        self._deterministic = deterministic
        self._actor = ActorSnapshot(agent, env.num_envs, deterministic)
        self._state: Any = None
        self.head = agent.policy_head
        self.is_recurrent = bool(agent.initial_state(1))

    def actor(self) -> Any:
        """Returns the agent's policy."""
        return self._actor

    def noise(self, horizon: int) -> Any:
        """Returns the noise of each step."""
        if self._deterministic:
            return [None] * horizon
        noise, self._state = self._agent.draw_noise(
            self.generator, (horizon, self.env.num_envs), self._state
        )
        return noise


class _FunctionPlayer(_Player):
    """A function of one observation."""

    def __init__(
        self,
        function: Callable[[Any], Any],
        env: VectorEnvAdapter,
        seed: int | None,
    ) -> None:
        super().__init__(env, seed)
        self._function = function
        self._spec = action_spec(env.action_space)
        self._given: list[Any] = []

    def actor(self) -> Any:
        """Returns itself."""
        self._given = []
        return self

    def __call__(self, observation: Tree[Tensor], noise: object) -> Actions:
        """Calls the function once for each environment."""
        actions = []
        for index in range(self.env.num_envs):
            seen = map_leaves(lambda each, i=index: each[i], observation)
            actions.append(self._checked(self._function(seen)))
        together = map_leaves(lambda *each: np.stack(each), *actions)
        self._given.append(together)
        own = np.zeros(
            (self.env.num_envs, *self.head.action_shape), self.head.action_dtype
        )
        return own, together

    def _checked(self, action: object) -> Any:
        """Returns one action with the dtype of its space; checks it."""
        try:
            cast = map_leaves(
                lambda spec, each: np.asarray(each).astype(spec.dtype),
                self._spec,
                action,
            )
            inside = self.env.action_space.contains(
                cast
                if not isinstance(cast, np.ndarray) or cast.ndim
                else cast[()]
            )
        except (TypeError, ValueError, KeyError, IndexError):
            inside = False
        if not inside:
            raise ValueError(
                "Expected the policy to return a member of "
                f"{self.env.action_space}. Received: {action!r}"
            )
        return cast

    def noise(self, horizon: int) -> Any:
        """Returns None for each step."""
        return [None] * horizon

    def taken(self, trajectory: Trajectory) -> Any:
        """Returns the actions of the function, `[T, B, ...]`."""
        return map_leaves(lambda *each: np.stack(each), *self._given)


def _player(
    policy: Any,
    env: VectorEnvAdapter,
    seed: int | None,
    deterministic: bool,
) -> _Player:
    """Returns the player for a policy."""
    if policy is None or (isinstance(policy, str) and policy == "random"):
        return _Player(env, seed)
    if hasattr(policy, "sample_action"):
        return _AgentPlayer(policy, env, seed, deterministic)
    if callable(policy):
        return _FunctionPlayer(policy, env, seed)
    raise ValueError(
        "Expected an agent, a function from an observation to an action, or "
        f"'random'. Received: policy={policy!r}"
    )


def _play(player: _Player, env: VectorEnvAdapter, steps: int) -> dict[str, Any]:
    """Takes the steps, and returns them as arrays `[N, ...]`."""
    horizon = min(-(-steps // env.num_envs), _MOST_STEPS)
    collector = Collector(env, horizon, player.head.format)
    collector.sequence_length = horizon if player.is_recurrent else None
    actor = player.actor()
    collector.reset(seed=player.env_seed)
    if isinstance(actor, ActorSnapshot):
        actor.begin(np.ones(env.num_envs, np.bool_))
    parts: list[dict[str, Any]] = []
    count = 0
    while count < steps:
        trajectory = collector.collect(player.actor(), player.noise(horizon))
        parts.append(_steps(trajectory, player.taken(trajectory)))
        count += int(np.count_nonzero(trajectory.valid))
    joined = {
        key: map_leaves(
            lambda *each: np.concatenate(each), *(part[key] for part in parts)
        )
        for key in parts[0]
    }
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
    record: dict[str, Any] = {
        key: map_leaves(lambda array: array[t, b], tree)
        for key, tree in joined.items()
    }
    last = np.append(b[1:] != b[:-1], True)
    record["truncations"] |= last & ~record["terminations"]
    return record
