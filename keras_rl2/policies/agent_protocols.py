"""Interfaces of an agent for acting and datasets, and its default round."""

from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import NoReturn
from typing import Protocol
from typing import SupportsInt

import gymnasium
import numpy as np

from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.distributions import Distribution
from keras_rl2.distributions import PolicyHead
from keras_rl2.exploration import PolicyNoise
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree


class OwnRollout(NamedTuple):
    """The rollouts that an on-policy algorithm learns from by default.

    Attributes:
        steps: int. Steps of a round, of all environments together.
        passes: int. Times that every step is trained on.
        batch_size: int or None. Steps of one minibatch; None for the whole
            rollout. It grows with the round where many environments make that
            longer, so that the number of updates stays.
        shortest: int. Steps that each environment takes at least. Defaults to
            `32`.
        scale_rewards: bool. Whether rewards are divided by the running
            deviation of the discounted return. Defaults to `True`.
        rounds_per_epoch: int. Rounds of one Keras epoch. Defaults to `1`.

    Example:

    >>> own = OwnRollout(steps=2048, passes=10, batch_size=64)
    >>> own.horizon(1), own.horizon(8), own.horizon(100)
    (2048, 256, 32)
    >>> own.minibatch(2048, num_envs=1), own.minibatch(8192, num_envs=256)
    (64, 256)
    """

    steps: int
    passes: int
    batch_size: int | None
    shortest: int = 32
    scale_rewards: bool = True
    rounds_per_epoch: int = 1

    def horizon(self, num_envs: int) -> int:
        """Returns the steps of each environment, a multiple of `shortest`."""
        times = -(-self.steps // (num_envs * self.shortest))
        return times * self.shortest

    def minibatch(self, steps: int, num_envs: int) -> int:
        """Returns the steps of one minibatch of a round.

        Args:
            steps: int. Steps of the round, which may be the user's setting.
            num_envs: int. Number of environments. With many of them, a round
                of the algorithm's own is longer than its `steps`.
        """
        if self.batch_size is None:
            return steps
        times = self.horizon(num_envs) * num_envs // self.steps
        return min(times * self.batch_size, steps)


class ActingPolicy(Protocol):
    """Chooses actions: the interface for stepping environments."""

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """The space of one environment's observations."""

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """The space of one environment's actions."""

    @property
    def observation_spec(self) -> Tree[ArraySpec]:
        """Shapes and dtypes of one observation as it is stored."""

    @property
    def head(self) -> PolicyHead:
        """The conversion between the policy's outputs and the action space."""

    @property
    def noise(self) -> PolicyNoise:
        """The noise of `sample_action`, at present."""

    @property
    def acting_variables(self) -> list[Any]:
        """Keras variables that actions depend on.

        A snapshot copies their values and follows no others.
        """

    @property
    def trainable_variables(self) -> list[Any]:
        """Keras variables that training changes."""

    @property
    def collecting(self) -> "ActingPolicy":
        """The policy that collects, whose state may have further parts."""

    def initial_state(self, batch_size: int) -> tuple[np.ndarray, ...]:
        """Returns a recurrent policy's state at the start of B episodes.

        It is empty if the policy is not recurrent, and then `policy_step` is
        never called.
        """

    def policy_step(
        self, observation: Any, begins: Tensor, state: Sequence[Tensor]
    ) -> tuple[Distribution, Sequence[Tensor]]:
        """Returns the policy of one step and the state after it, in a graph.

        `begins` `[B]` is 1 where an episode begins; see `initial_state`.
        """

    def sample_action(self, observation: Any, noise: Tensor) -> Tensor:
        """Draws the policy's actions by its noise, in a graph."""

    def greedy_action(self, observation: Any) -> Tensor:
        """Returns the policy's most probable actions, in a graph."""


class EvaluatedAgent(Protocol):
    """An agent with a policy, for `EvaluationDataset` and `record`."""

    @property
    def policy(self) -> ActingPolicy:
        """The policy, once the agent is bound."""

    def bind(
        self,
        observation_space: gymnasium.Space[Any],
        action_space: gymnasium.Space[Any],
    ) -> None:
        """Binds the agent to the spaces of one environment.

        `policy` exists from then on. It is called again, with the same
        spaces, whenever an environment is used.
        """


class CollectingAgent(EvaluatedAgent, Protocol):
    """An agent for any dataset of `fit`.

    Attributes:
        devices: `keras_rl2.training.devices.Devices`.
        env_steps: int. Steps taken so far; the dataset counts them up.
        offline_updates: int. Updates on recorded data alone, alike.
        on_policy: bool. Whether the agent learns from rollouts of its present
            policy. If so it is a `RolloutAgent`, and otherwise a `ReplayAgent`.
        whole_episodes: bool. Whether a round is one episode of each
            environment.
    """

    devices: Any
    env_steps: int
    offline_updates: int
    on_policy: bool
    whole_episodes: bool

    @property
    def gamma(self) -> float:
        """Discount factor."""

    def begin_round(self) -> None:
        """Called before each rollout, when weights may still change."""

    def exploration_logs(self) -> dict[str, float]:
        """Returns the present settings of exploration, for the logs."""

    def observe(self, trajectory: Trajectory) -> None:
        """Called once with each rollout, for statistics of observations."""


class RolloutAgent(CollectingAgent, Protocol):
    """An agent for `RolloutDataset`, which makes samples from rollouts.

    An agent that may learn from rollouts of an earlier policy also has
    `max_lag`: updates between acting and learning, None for those of a round.
    """

    def own_rollout(
        self, observation_space: gymnasium.Space[Any]
    ) -> OwnRollout:
        """Returns the rollouts that the algorithm learns from by default."""

    def prepare(
        self, trajectory: Trajectory
    ) -> tuple[dict[str, Any], dict[str, float]]:
        """Returns samples `[T * B, ...]`, and statistics for the logs."""

    def sample_spec(
        self, length: int | None = None
    ) -> dict[str, Tree[ArraySpec]]:
        """Returns shapes and dtypes of a sample, of `length` steps if given."""


class ReplayAgent(CollectingAgent, Protocol):
    """An agent for `ReplayDataset`, which can store TD errors."""

    @property
    def default_batch_size(self) -> int:
        """Transitions of a minibatch."""

    @property
    def updates_per_step(self) -> float:
        """Updates that follow on each environment step."""

    @property
    def updates(self) -> SupportsInt:
        """Updates so far, a number or a variable."""

    def keep_td_errors(self, td_errors: Any) -> None:
        """Sets the variable `[updates, batch]` for TD errors, or None."""


def learns_offline(agent: CollectingAgent) -> bool:
    """Returns whether an agent learns from a fixed dataset.

    That is its attribute `learns_offline`; without one, whether it learns from
    replay.
    """
    return bool(getattr(agent, "learns_offline", not agent.on_policy))


def refuse_on_policy(agent: CollectingAgent, dataset: object) -> NoReturn:
    """Raises a `ValueError` for an agent that learns from new rollouts only."""
    raise ValueError(
        "Expected a `keras_rl2.RolloutDataset` for "
        f"{type(agent).__name__}, which learns from its present "
        f"policy only. Received: {type(dataset).__name__}"
    )
