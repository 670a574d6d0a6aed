"""Parallelised Q-network."""

from typing import Any
from typing import Unpack

import gymnasium
import keras
from keras import ops

from keras_rl2 import returns
from keras_rl2.agents.agent import AgentArguments
from keras_rl2.agents.on_policy_agent import RolloutLearner
from keras_rl2.agents.value_policy import ValuePolicy
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.losses import statistics
from keras_rl2.losses.value_distributions import ScalarValues
from keras_rl2.policies.agent_protocols import OwnRollout
from keras_rl2.policies.epsilon_greedy import EpsilonGreedy
from keras_rl2.spaces.trees import Tree
from keras_rl2.updates.rollout_samples import RolloutSamples
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class PQN(RolloutLearner, ValuePolicy):
    """Q-learning from new rollouts of many environments, without a replay.

    Layer normalization makes a target network unnecessary. The targets are
    λ-returns of the rollout under the weights that collected it,

        Gₜ = rₜ + γ (λ Gₜ₊₁ + (1 - λ) maxₐ Q(sₜ₊₁, a)),

    and the loss is the squared error of the Q-value of the action taken.
    Exploration is ε-greedy.

    Args:
        q_network: `keras.Model` from observations to the Q-values of all
            actions, `[B, n]`.
        q_lambda: float. Decay λ of the mixture of n-step returns. Defaults to
            `0.65`.
        epsilon: float or `keras.optimizers.schedules.LearningRateSchedule`
            over environment steps. Probability of a random action; it changes
            from round to round. None for a linear decay from 1 to 0.05 over
            10,000 steps. Defaults to `None`.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", num_envs=4, horizon=32,
    ...                              seed=0)
    >>> agent = rl.PQN.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> history = agent.fit(rollouts, epochs=1, verbose=0)
    >>> sorted(history.history)[:3]
    ['env_steps', 'episode_length', 'episode_return']

    Reference:
        - [Gallici et al., 2024](https://arxiv.org/abs/2407.04811).
    """

    shared_numbers = ("gamma", "q_lambda")
    default_hidden = (128, 128)
    default_activation = "relu"
    default_initialization = "fan_in"
    statistics_names = ("loss", "q_value", "gradient_norm")

    def __init__(
        self,
        q_network: keras.Model,
        *,
        q_lambda: float = 0.65,
        epsilon: float
        | keras.optimizers.schedules.LearningRateSchedule
        | None = None,
        max_gradient_norm: float | None = 10.0,
        **kwargs: Unpack[AgentArguments],
    ) -> None:
        check_in_range(q_lambda=(q_lambda, 0.0, 1.0))
        exploring = EpsilonGreedy(epsilon)
        super().__init__(  # type: ignore[misc]
            max_gradient_norm=max_gradient_norm, **kwargs
        )
        self.q_network = q_network
        self.q_lambda = q_lambda
        self.epsilon = exploring.epsilon
        self.exploring = exploring
        self.values = ScalarValues("mse")
        self.rollout_samples = RolloutSamples(self, ("returns", "value"))

    @classmethod
    def own_rollout(cls, observation_space: gymnasium.Space[Any]) -> OwnRollout:
        """Returns the rollouts that it learns from by default."""
        del observation_space
        return OwnRollout(
            steps=1024, passes=4, batch_size=128, scale_rewards=False
        )

    def policy_and_value(
        self, rows: Tree[Tensor], steps: int | None, training: bool
    ) -> tuple[None, Tensor]:
        """Returns no policy, and the value of the best action of each row."""
        return None, ops.max(self._choices(rows, training), axis=-1)

    def targets(
        self,
        arrays: dict[str, Any],
        log_prob: Tensor | None,
        values: Tensor,
        next_values: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Returns advantages and λ-returns `[T, B]`; see `OnPolicyAgent`."""
        del log_prob
        targets = returns.lambda_returns(
            arrays["reward"],
            self.discounts(arrays),
            next_values,
            self.q_lambda,
            truncated=arrays["truncated"],
        )
        return targets - values, targets

    def objectives(self) -> dict[str, Objective]:
        """Returns the only loss, that of the network."""
        return {"q": Objective(self.loss_terms, [self.q_network])}

    def loss_terms(self, batch: Batch) -> Terms:
        """Computes the squared error of the values of the actions taken.

        Args:
            batch: dict of `[B, ...]`; see `sample_spec`.

        Returns:
            dict of scalars: `loss`, which is minimised, and `q_value`.
        """
        [taken] = self.values_of_taken(
            batch["observation"], batch["action"], training=True
        )
        weight = batch["weight"]
        return {
            "loss": statistics.weighted_mean(
                ops.square(batch["returns"] - taken), weight
            ),
            "q_value": statistics.weighted_mean(taken, weight),
        }
