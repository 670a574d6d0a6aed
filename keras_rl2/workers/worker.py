"""What a worker does: it holds some of the environments, and steps them."""

import copy
import dataclasses
from typing import Any

import numpy as np

from keras_rl2.collecting import Actor
from keras_rl2.collecting import BrokenEpisodes
from keras_rl2.collecting import Collector
from keras_rl2.collecting import EpisodeCollector
from keras_rl2.collecting import PolicyActor
from keras_rl2.collecting import SentPolicy
from keras_rl2.collecting import Trajectory
from keras_rl2.collecting.collector import StepNoise
from keras_rl2.envs import as_vector_env
from keras_rl2.envs.vector_env import Step
from keras_rl2.files import plain_data
from keras_rl2.spaces.action_format import ActionFormat
from keras_rl2.workers.env_maker import EnvMaker


@dataclasses.dataclass(frozen=True)
class Share:
    """Which of all environments a worker holds.

    Attributes:
        index: int. Which worker it is.
        first: int. The first of its environments.
        num_envs: int. How many it has.
    """

    index: int
    first: int
    num_envs: int

    @property
    def envs(self) -> slice:
        """Its environments among all."""
        return slice(self.first, self.first + self.num_envs)


@dataclasses.dataclass(frozen=True)
class CollectionPlan:
    """How rollouts are to be collected.

    Attributes:
        horizon: int. Steps of each environment, T.
        whole_episodes: bool. Whether a rollout is one episode of each.
        action: `ActionFormat`. Of the policy's own actions.
        sequence_length: int or None. As of `Collector`.
        restarts: bool. Whether environments that fail begin anew.
        policy: `SentPolicy` or None. What acts, without weights; None where
            it cannot be sent, and only what is drawn beforehand is done.
    """

    horizon: int
    whole_episodes: bool
    action: ActionFormat
    sequence_length: int | None
    restarts: bool
    policy: SentPolicy | None


@dataclasses.dataclass(frozen=True)
class Order:
    """One rollout that is asked for.

    Attributes:
        noise: `[T, B, ...]`, or what is drawn for an actor, by the step.
        actor: Callable or None. What acts in the place of the policy. Defaults
            to `None`.
        reset: tuple of an int or None, or None. The seed with which new
            episodes are to be begun in all environments; None where they go
            on. Defaults to `None`.
    """

    noise: StepNoise
    actor: Actor | None = None
    reset: tuple[int | None] | None = None


@dataclasses.dataclass(frozen=True)
class Collected:
    """What came of an order.

    Attributes:
        trajectory: `Trajectory`.
        broken: `BrokenEpisodes` or None. What failures have left of it.
        env_restarts: int. Failures of environments so far.
        pending_reset: `[B]` bool. As of the adapter, after it.
    """

    trajectory: Trajectory
    broken: BrokenEpisodes | None
    env_restarts: int
    pending_reset: np.ndarray


class Worker:
    """Holds environments and a policy; imports no TensorFlow.

    It is the same in every kind of process, and in this one for tests.

    Args:
        share: `Share`. Which environments it holds.
        maker: `EnvMaker`. Makes them.
        seed: int. Seeds environments that nobody has reset: those of a worker
            that takes the place of another one.
    """

    def __init__(self, share: Share, maker: EnvMaker, seed: int) -> None:
        self.share = share
        self._seed = seed
        self.env = as_vector_env(maker(share.num_envs))
        self.env.remake = lambda: maker(share.num_envs)
        self._collector: Collector | None = None
        self._actor: PolicyActor | None = None
        # Whether its environments have ever been reset.
        self._begun = False

    def describe(self) -> dict[str, Any]:
        """Returns what has to be known of the environments elsewhere."""
        return {
            "name": self.env.name,
            "observation_space": self.env.observation_space,
            "action_space": self.env.action_space,
            "masks_reset_rows": self.env.masks_reset_rows,
        }

    def plan(self, plan: CollectionPlan) -> None:
        """Prepares for rollouts of a kind.

        Args:
            plan: `CollectionPlan`.
        """
        kind = EpisodeCollector if plan.whole_episodes else Collector
        collector = self._collector
        if type(collector) is not kind:
            collector = kind(self.env, plan.horizon, plan.action)
        assert collector is not None
        collector.sequence_length = plan.sequence_length
        collector.restart_seed = self._next_seed if plan.restarts else None
        collector.keeps_log_prob = False
        self._collector = collector
        self._actor = None
        if plan.policy is not None:
            # A copy: it may lie in memory that is written to again.
            self._actor = copy.deepcopy(plan.policy).actor()
            collector.keeps_log_prob = plan.policy.with_log_prob

    def collect(
        self, weights: list[np.ndarray] | None, order: Order
    ) -> Collected:
        """Collects a rollout.

        Args:
            weights: list of arrays or None. What the policy acts with.
            order: `Order`. What is asked for.

        Returns:
            `Collected`.

        Raises:
            ValueError: If an observation or a reward is not finite.
        """
        collector = self._collector
        assert collector is not None
        actor: Actor | None = order.actor
        if actor is None:
            assert self._actor is not None
            assert weights is not None
            self._actor.set_weights(weights)
            actor = self._actor
        anew = collector.observation is None and order.reset is None
        if order.reset is not None or anew:
            collector.reset(self._seed_of(order.reset))
            if self._actor is not None:
                self._actor.begin(np.ones(self.share.num_envs, np.bool_))
        trajectory = collector.collect(actor, order.noise)
        broken = collector.broken
        if anew:
            broken = broken or BrokenEpisodes(trajectory.reward.shape)
            broken.cut_before[:] = True
        return Collected(
            trajectory, broken, collector.env_restarts, self.env.pending_reset
        )

    def _seed_of(self, reset: tuple[int | None] | None) -> int | None:
        """Returns what environments are reset with, that were or never were.

        Those that took the place of others have no random states to go on.
        """
        seed = None if reset is None else reset[0]
        begun, self._begun = self._begun, True
        return self._next_seed(0) if seed is None and not begun else seed

    def _next_seed(self, restarts: int) -> int:
        """Returns the seed of environments that are begun anew."""
        sequence = np.random.SeedSequence((self._seed, restarts))
        return int(sequence.generate_state(1)[0] >> 2)

    # One step at a time, for whoever plays in a dataset's environments.

    def reset(self, seed: int | None) -> Any:
        """Begins new episodes; see `VectorEnvAdapter.reset`."""
        return self.env.reset(seed=self._seed_of((seed,)))

    def step(self, action: Any) -> tuple[Step, np.ndarray]:
        """Takes a step; see `VectorEnvAdapter.step`.

        Args:
            action: `[B, ...]`. A tree of arrays.

        Returns:
            What the step gave, and `pending_reset`.
        """
        return self.env.step(action), self.env.pending_reset

    # What a training that is resumed goes on with.

    def get_state(self) -> dict[str, Any] | None:
        """Returns where the environments are, if that can be saved."""
        if self._collector is None or self._collector.observation is None:
            return None
        simulation = self._collector.simulation()
        if simulation is None:
            return {"not_saved": self._collector.not_saved}
        return {
            **simulation,
            "adapter": self.env.get_state(),
            "observation": self._collector.observation,
            "memory": None if self._actor is None else self._actor.get_state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave.

        Args:
            state: dict, as returned by `get_state`.
        """
        assert self._collector is not None
        # Copies: it may lie in memory that is written to again.
        state = plain_data.copied(state)
        self._begun = True
        self.env.set_state(state["adapter"])
        self._collector.go_on(state, state["observation"])
        if state["memory"] is not None and self._actor is not None:
            self._actor.set_state(state["memory"])

    def close(self) -> None:
        """Closes the environments."""
        self.env.close()
