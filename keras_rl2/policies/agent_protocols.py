"""Interfaces of agents for datasets.

Any object with these members can be passed to a dataset, whether or not it is
a `keras_rl2.Agent`. In shapes T are steps, B environments, and further axes
belong to one observation, action or draw of noise.
"""

from typing import Any
from typing import NoReturn
from typing import Protocol
from typing import SupportsInt

import gymnasium

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.policies.own_round import OwnRollout
from keras_rl2.policies.policy import Policy
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree


class CollectingAgent(Policy, Protocol):
    """An agent for any dataset of `fit`.

    Attributes:
        env_steps: int. Steps taken so far; the dataset counts them up.
        on_policy: bool. Whether the agent learns from rollouts of its present
            policy. If so it is a `RolloutAgent`, and otherwise a `ReplayAgent`.
        whole_episodes: bool. Whether a round is one episode of each
            environment.
    """

    env_steps: int
    on_policy: bool
    whole_episodes: bool

    @property
    def gamma(self) -> float:
        """Discount factor."""

    def begin_round(self) -> None:
        """Called before each rollout, when weights may still change."""

    def observe(self, trajectory: Trajectory) -> None:
        """Called once with each rollout, for statistics of observations.

        Args:
            trajectory: `Trajectory` of T steps of B environments.
        """


class RolloutAgent(CollectingAgent, Protocol):
    """An agent for `RolloutDataset`, which makes samples from rollouts.

    An agent that may learn from rollouts of an earlier policy also has
    `max_lag`: updates between acting and learning, None for those of a round.
    """

    def own_rollout(
        self, observation_space: gymnasium.Space[Any]
    ) -> OwnRollout:
        """Returns the rollouts that the algorithm learns from by default.

        Args:
            observation_space: `gymnasium.Space`. Space of one environment.
        """

    def prepare(
        self, trajectory: Trajectory
    ) -> tuple[dict[str, Any], dict[str, float]]:
        """Computes the samples for the updates.

        Args:
            trajectory: `Trajectory` of T steps of B environments.

        Returns:
            Samples, a dict of arrays `[T * B, ...]` described by
            `sample_spec`, and statistics for the logs.
        """

    def sample_spec(
        self, length: int | None = None
    ) -> dict[str, Tree[ArraySpec]]:
        """Returns shape and dtype of each entry of one sample.

        Args:
            length: int or None. Steps of a sequence, the sample of a recurrent
                agent. Defaults to `None`: a sample is one step.
        """


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
        """Sets the variable for the TD errors of minibatches.

        Args:
            td_errors: `tf.Variable` `[updates, batch]`, by the `position` of
                a minibatch; None if they are not needed.
        """

    def exploration_logs(self) -> dict[str, float]:
        """Returns the present settings of exploration, for the logs."""


def learns_offline(agent: CollectingAgent) -> bool:
    """Returns whether an agent learns from a fixed dataset.

    Args:
        agent: `CollectingAgent`.

    Returns:
        bool. Its attribute `learns_offline`, True for agents that take the
        minibatches of a `ReplayDataset` from any source; without the
        attribute, whether it learns from replay.
    """
    return bool(getattr(agent, "learns_offline", not agent.on_policy))


def refuse_on_policy(agent: CollectingAgent, dataset: object) -> NoReturn:
    """Raises for an agent that learns from fresh rollouts only.

    Args:
        agent: `CollectingAgent`.
        dataset: The dataset passed to it.

    Raises:
        ValueError: Always.
    """
    raise ValueError(
        "Expected a `keras_rl2.RolloutDataset` for "
        f"{type(agent).__name__}, which learns from its present "
        f"policy only. Received: {type(dataset).__name__}"
    )
