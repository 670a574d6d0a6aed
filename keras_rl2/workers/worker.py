"""A worker, which holds and steps some of the environments."""

import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeAlias

import cloudpickle
import numpy as np

from keras_rl2.collecting.collector import Collector
from keras_rl2.collecting.collector import EpisodeCollector
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.collecting.policy_actor import Actor
from keras_rl2.collecting.policy_actor import PolicyActor
from keras_rl2.collecting.policy_actor import SentPolicy
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.envs import making
from keras_rl2.envs.adapt import as_vector_env
from keras_rl2.envs.adapt import is_maker
from keras_rl2.envs.making import EnvWrapper
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.saving import plain_data
from keras_rl2.spaces.action_format import ActionFormat

#: Makes a number of environments to be stepped together.
EnvMaker: TypeAlias = Callable[[int], Any]


def env_maker(
    env: GivenEnv,
    env_kwargs: Mapping[str, Any] | None,
    wrappers: Sequence[EnvWrapper],
) -> EnvMaker:
    """Returns a function that makes environments wherever it is sent."""
    if not is_maker(env):
        raise ValueError(
            "Expected the id of a registered environment, or a function that "
            "makes one, with `workers`: they make their own. "
            f"Received: env={env!r}"
        )
    maker: EnvMaker = functools.partial(
        making.make_vector_env, env, env_kwargs=env_kwargs, wrappers=wrappers
    )
    if isinstance(env, str):
        maker = making.registering(env, maker)
    else:
        making.refuse_arguments_of_function(env_kwargs, wrappers)
    try:
        cloudpickle.dumps(maker)
    except Exception as error:
        raise ValueError(
            "Expected environments, with their arguments and wrappers, that "
            "can be sent to workers by cloudpickle: an object that cannot be "
            "is best made within the function that makes the environment. "
            f"Received: env={env!r} ({error!r})"
        ) from error
    return maker


@dataclasses.dataclass(frozen=True)
class Collected:
    """A rollout of some environments.

    Attributes:
        trajectory: `Trajectory`.
        lost: `[B]` bool. Environments whose unfinished episodes were lost with
            their worker before the rollout.
        pending_reset: `[B]` bool. That of the adapter, after the rollout.
    """

    trajectory: Trajectory
    lost: np.ndarray
    pending_reset: np.ndarray


class Worker:
    """Holds environments and a policy; imports no TensorFlow.

    Args:
        envs: slice. The indices of its environments among all.
        maker: Function that makes that number of them.
        seed: int. Seed for environments that were never reset: those of a
            worker that replaces another one.
    """

    def __init__(self, envs: slice, maker: EnvMaker, seed: int) -> None:
        self.first, num_envs = envs.start, envs.stop - envs.start
        self._seed = seed
        self.env = as_vector_env(maker(num_envs))
        self._collector: Collector | None = None
        self._actor: PolicyActor | None = None
        # Whether its environments have ever been reset.
        self._begun = False

    def describe(self) -> bytes:
        """Returns the spaces and attributes of its adapter, by cloudpickle."""
        env = self.env
        spaces = env.observation_space, env.action_space
        names = "name", "num_envs", "max_episode_steps", "masks_reset_rows"
        attributes = {name: getattr(env, name) for name in (*names, "players")}
        return cloudpickle.dumps((spaces, attributes))

    def plan(
        self,
        horizon: int,
        whole_episodes: bool,
        action: ActionFormat,
        sequence_length: int | None,
        policy: SentPolicy | None,
    ) -> None:
        """Prepares for rollouts."""
        kind = EpisodeCollector if whole_episodes else Collector
        if type(self._collector) is not kind:
            self._collector = kind(self.env, horizon, action)
        collector = self._collector
        collector.sequence_length = sequence_length
        collector.keeps_log_prob = bool(policy and policy.with_log_prob)
        self._actor = policy.actor() if policy else None

    def collect(
        self,
        acting: list[np.ndarray] | Actor,
        noise: StepNoise,
        reset: tuple[int | None] | None,
    ) -> Collected:
        """Collects a rollout.

        Args:
            acting: list of arrays: weights of the policy; or a callable that
                acts in its place.
            noise: `[T, B, ...]` noise, or draws for an actor, by the step.
            reset: tuple of an int or None, or None. The seed for new episodes
                in all environments; None if the episodes continue.
        """
        collector = self._collector
        assert collector is not None
        actor: Actor | None = self._actor
        if callable(acting):
            actor = acting
        elif self._actor is not None:
            self._actor.set_weights(acting)
        assert actor is not None
        anew = collector.observation is None and reset is None
        if reset is not None or anew:
            collector.reset(self._seed_of(reset))
            if self._actor is not None:
                self._actor.begin(np.ones(self.env.num_envs, np.bool_))
        trajectory = collector.collect(actor, noise)
        lost = np.full(self.env.num_envs, anew)
        return Collected(trajectory, lost, self.env.pending_reset)

    def _seed_of(self, reset: tuple[int | None] | None) -> int | None:
        """Returns the seed of a reset: that asked for, or the worker's own.

        A worker that replaces another one has no random states to continue.
        """
        begun, self._begun = self._begun, True
        if reset is not None and reset[0] is not None:
            return reset[0] + self.first
        return None if begun else derived_seed(self._seed, 0)

    def get_state(self) -> dict[str, Any] | None:
        """Returns the state of the environments, if it can be saved."""
        if self._collector is None or self._collector.observation is None:
            return None
        return {
            **(self._collector.simulation() or {}),
            "adapter": self.env.get_state(),
            "observation": self._collector.observation,
            "memory": None if self._actor is None else self._actor.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores a state that `get_state` returned."""
        assert self._collector is not None
        # It is copied: arrays of Ray's store cannot be written to.
        state = plain_data.copied(state)
        self._begun = True
        self.env.set_state(state["adapter"])
        self._collector.go_on(state, state["observation"])
        if state["memory"] is not None and self._actor is not None:
            self._actor.set_state(state["memory"])


def derived_seed(*numbers: int) -> int:
    """Returns a seed that depends on all of some numbers."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> 2)
