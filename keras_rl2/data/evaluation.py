"""Evaluation of a policy over whole episodes."""

import threading
import warnings
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.basics import arguments
from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import refusing_unknown
from keras_rl2.collecting.checks import check_finite
from keras_rl2.collecting.checks import check_mask
from keras_rl2.collecting.collector import EpisodeStatistics
from keras_rl2.collecting.policy_actor import PolicyActor
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.policies.actors import ActorSnapshot
from keras_rl2.policies.agent_protocols import EvaluatedAgent
from keras_rl2.spaces.supported import is_masked
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

# Episodes of nearly all tasks are shorter, and so many steps are quick.
_MANY_STEPS = 100_000


class EvaluationDataset:
    """Episodes of an environment, to be played by `agent.evaluate`.

    As `validation_data` of `fit` it logs `val_episode_return`, so that
    `ModelCheckpoint(monitor="val_episode_return", mode="max")` and
    `EarlyStopping` work as usual in Keras.

    Each environment plays a fixed share of the episodes, so that short episodes
    are not counted more often than long ones. If the shares are not equal, the
    last environments play one more: 10 episodes in 4 environments are 2, 2, 3
    and 3. In games, each player plays equally many, rounded up. Evaluations of
    several threads run one after another.

    Args:
        env: A `gymnasium.Env`, a `gymnasium.vector.VectorEnv`, an EnvPool
            environment, an id string, or a function that makes a
            `gymnasium.Env`. Preferably not the one trained on.
        episodes: int. Episodes to play. Defaults to `10`.
        deterministic: bool. Whether the mode of the policy is taken instead of
            a sample. Defaults to `True`.
        num_envs: int. Environments to make when `env` is an id or a function.
            Defaults to `1`.
        seed: int or None. Seeds environments and sampling, the same for every
            evaluation; None for other episodes each time. Defaults to `None`.
        env_kwargs: dict or None. Arguments of the environments that are made
            of an id, as `gymnasium.make` takes them. Defaults to `None`.
        wrappers: sequence of functions from a `gymnasium.Env` to another one,
            applied to each environment that is made of an id. Defaults to
            `()`.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", seed=0)
    >>> episodes = EvaluationDataset("CartPole-v1", episodes=2, seed=0)
    >>> sorted(episodes.play(agent))
    ['episode_length', 'episode_return', 'episode_return_std']
    """

    @refusing_unknown
    def __init__(
        self,
        env: GivenEnv,
        episodes: int = 10,
        *,
        deterministic: bool = True,
        num_envs: int = 1,
        seed: int | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[EnvWrapper] = (),
    ) -> None:
        arguments.check_positive(episodes=episodes, num_envs=num_envs)
        arguments.check_flag(deterministic=deterministic)
        arguments.check_seed(seed)
        self.env = as_vector_env(
            env, num_envs, env_kwargs=env_kwargs, wrappers=wrappers
        )
        self.episodes = episodes
        self.deterministic = deterministic
        self.seed = seed
        # It is seeded now: an evaluation within `fit` must not change the
        # training.
        self._generator = seeds.generator(seed)
        self._agent: EvaluatedAgent | None = None
        self._actor: ActorSnapshot | None = None

    def play(
        self, agent: EvaluatedAgent, actor: PolicyActor | None = None
    ) -> dict[str, float]:
        """Plays the episodes with the agent's current weights.

        Args:
            agent: `keras_rl2.Agent`, or an object with the same methods
                (`EvaluatedAgent`).
            actor: `PolicyActor` for as many environments. Acts instead of the
                agent, such as an exported file; None for the agent. Defaults to
                `None`.

        Returns:
            dict: mean and standard deviation of the episodes' returns and
            their mean length. If there are several players, also the mean
            return of each, such as `episode_return/red`.
        """
        agent.bind(self.env.observation_space, self.env.action_space)
        # It is not made before, since a lock cannot be copied.
        with vars(self).setdefault("_playing", threading.Lock()):
            played = self._run(agent, actor or self._snapshot(agent))
        deviation = float(np.std(played.returns))
        return {**played.logs(), "episode_return_std": deviation}

    def _seed_and_generator(self) -> tuple[int | None, np.random.Generator]:
        """Returns the environments' seed, and the generator of the noise."""
        if self.seed is not None:
            return self.seed, np.random.default_rng(self.seed)
        # A training around it may be seeded: its random state must not change.
        begun = self.env.resets > 0
        seed = None if begun else int(self._generator.integers(2**31))
        return seed, self._generator

    def _snapshot(self, agent: EvaluatedAgent) -> ActorSnapshot:
        """Returns the agent's current policy, converted once."""
        if self._actor is None or agent is not self._agent:
            self._agent = agent
            self._actor = ActorSnapshot(
                agent.policy, self.env.num_envs, self.deterministic
            )
        self._actor.sync()
        return self._actor

    def _run(
        self, agent: EvaluatedAgent, actor: PolicyActor
    ) -> EpisodeStatistics:
        """Runs steps until every environment has played its share."""
        env = self.env
        # The last ones play one more if the division leaves a remainder.
        more = env.num_envs - 1 if env.players else np.arange(env.num_envs)
        share = np.zeros_like(env.pending_reset, np.int64)
        share += (self.episodes + more) // env.num_envs
        seed, generator = self._seed_and_generator()
        current_return = np.zeros(env.num_envs)
        current_length = np.zeros(env.num_envs, np.int64)
        most = self.episodes + env.num_envs
        played = EpisodeStatistics(env.num_envs, most, env.players)
        observation = env.reset(seed=seed)
        head = agent.policy.head.format
        masked = is_masked(env.observation_space)
        actor.begin(np.ones(env.num_envs, np.bool_))
        step = 0
        while share.any():
            self._check_finite("observation", observation)
            if masked:
                check_mask(head, observation, env.pending_reset, env.name, step)
            step += 1
            if step == _MANY_STEPS and not played.returns:
                _warn_of_long_episodes(env.name)
            noise = None
            if not self.deterministic:
                noise, _ = agent.policy.noise.draw(generator, (env.num_envs,))
            resetting = env.pending_reset
            counted = ~resetting
            _, action = actor(
                map_leaves(np.ascontiguousarray, observation), noise
            )
            observation, reward, terminated, truncated, _ = env.step(action)
            self._check_finite("reward", reward)
            current_return += np.where(counted, reward, 0.0)
            current_length += counted
            ended = terminated | truncated
            actor.begin(env.begins(resetting, ended))
            for index in np.flatnonzero(ended).tolist():
                if share[index]:
                    share[index] -= 1
                    total, length = current_return[index], current_length[index]
                    played.append(total, length, index)
                current_return[index] = 0.0
                current_length[index] = 0
        return played

    def _check_finite(self, key: str, tree: Tree[np.ndarray]) -> None:
        """Raises an error for NaN or infinity, naming the source."""
        check_finite(
            key, tree, lambda x: f"{x[0]} of {self.env.name}, in an evaluation."
        )


def _warn_of_long_episodes(name: str) -> None:
    """Warns of an environment whose episodes may never end."""
    warnings.warn(
        f"No episode of {name} has ended in {_MANY_STEPS:,} steps: "
        "evaluations last until episodes end. Return `truncated=True` after "
        "so many steps, or wrap it in gymnasium.wrappers.TimeLimit",
        stacklevel=5,
    )
