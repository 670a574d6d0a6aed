"""What datasets ask of an agent, and nothing more.

Any object with these members can be given to a dataset, whether or not it is
a `keras_rl2.Agent`. In shapes T are steps, B environments, and what follows
belongs to one observation, action or draw of noise.
"""

from typing import Any
from typing import NoReturn
from typing import Protocol
from typing import SupportsInt
from typing import runtime_checkable

import gymnasium

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.policies.own_round import OwnRollout
from keras_rl2.policies.policy import Policy
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree


@runtime_checkable
class Lagging(Protocol):
    """An agent that may learn from rollouts of a policy it had before."""

    @property
    def max_lag(self) -> int | None:
        """Updates between acting and learning; None for those of a round."""


class CollectingAgent(Policy, Protocol):
    """What every dataset asks that `fit` learns from.

    Attributes:
        env_steps: int. Steps taken so far; the dataset counts them up.
    """

    env_steps: int

    @property
    def on_policy(self) -> bool:
        """Whether it learns from rollouts of its present policy.

        If so it is a `RolloutAgent`, and otherwise a `ReplayAgent`.
        """

    @property
    def whole_episodes(self) -> bool:
        """Whether a round is one episode of each environment."""

    @property
    def gamma(self) -> float:
        """Discount factor."""

    def begin_round(self) -> None:
        """Is called before each rollout, when weights may still change."""

    def observe(self, trajectory: Trajectory) -> None:
        """Is given each rollout once, for statistics of observations.

        Args:
            trajectory: `Trajectory` of T steps of B environments.
        """


class LearnsFromRollouts(Protocol):
    """What is known of an on-policy algorithm before there is an agent."""

    def own_rollout(
        self, observation_space: gymnasium.Space[Any]
    ) -> OwnRollout:
        """Returns the rollouts that it learns from by default.

        Args:
            observation_space: `gymnasium.Space`. Of one environment.
        """

    @property
    def whole_episodes(self) -> bool:
        """Whether a round is one episode of each environment."""


class RolloutAgent(CollectingAgent, LearnsFromRollouts, Protocol):
    """What `RolloutDataset` asks, beside: samples made of a rollout."""

    def prepare(
        self, trajectory: Trajectory
    ) -> tuple[dict[str, Any], dict[str, float]]:
        """Computes what the updates need.

        Args:
            trajectory: `Trajectory` of T steps of B environments.

        Returns:
            Samples, a dict of arrays `[T * B, ...]` as `sample_spec` says,
            and statistics for the logs.
        """

    def sample_spec(
        self, length: int | None = None
    ) -> dict[str, Tree[ArraySpec]]:
        """Returns shape and dtype of each entry of one sample.

        Args:
            length: int or None. Steps of a sequence, which is a sample of an
                agent that remembers. Defaults to `None`: a sample is one step.
        """


class LearnsFromReplay(Protocol):
    """What is known of an off-policy algorithm before there is an agent."""

    @property
    def default_batch_size(self) -> int:
        """Transitions of a minibatch."""

    @property
    def updates_per_step(self) -> float:
        """Updates that follow on each environment step."""


class ReplayAgent(CollectingAgent, LearnsFromReplay, Protocol):
    """What `ReplayDataset` asks, beside: where TD errors are written to."""

    @property
    def updates(self) -> SupportsInt:
        """Updates so far, a number or a variable."""

    def keep_td_errors(self, td_errors: Any) -> None:
        """Says where the TD errors of minibatches are to be written.

        Args:
            td_errors: `tf.Variable` `[updates, batch]`, by the `position` of
                a minibatch; None if nobody wants them.
        """

    def exploration_logs(self) -> dict[str, float]:
        """Returns how the agent explores at present, for the logs."""


def learns_offline(agent: CollectingAgent) -> bool:
    """Says whether an agent learns from a fixed dataset, by its word.

    Args:
        agent: `CollectingAgent`.

    Returns:
        bool. Its attribute `learns_offline`, true of whoever takes the
        minibatches that a `ReplayDataset` gives, whoever made them; where it
        does not say, whether it learns from replay.
    """
    return bool(getattr(agent, "learns_offline", not agent.on_policy))


def refuse_on_policy(agent: CollectingAgent, dataset: object) -> NoReturn:
    """Says what to take for an agent that learns from fresh rollouts only.

    Args:
        agent: `CollectingAgent`.
        dataset: What it was given.

    Raises:
        ValueError: Always.
    """
    raise ValueError(
        "Expected a `keras_rl2.RolloutDataset` for "
        f"{type(agent).__name__}, which learns from its present "
        f"policy only. Received: {type(dataset).__name__}"
    )
