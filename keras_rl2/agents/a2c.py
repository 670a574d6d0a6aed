"""Advantage actor-critic."""

from typing import Any

import gymnasium
import keras

from keras_rl2 import losses
from keras_rl2.agents.on_policy_agent import OnPolicyAgent
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Distribution
from keras_rl2.policies.agent_protocols import OwnRollout


@keras.saving.register_keras_serializable(package="keras_rl2")
class A2C(OnPolicyAgent):
    """Synchronous advantage actor-critic.

    Makes one update from each short rollout:

        L = mean(-A log pi(a)) + value_coefficient * mean((V - R)^2)
            - entropy_coefficient * mean(H)

    where A = R - V is constant in the first term. By default it is the
    generalized advantage estimate. With `gae_lambda=1.0` it is the n-step
    advantage as published, n being the `horizon` of the rollouts; `horizon=1`
    is the one-step actor-critic of textbooks. With a whole rollout as the
    batch (`batch_size=None`, `passes=1`) one recorded forward pass serves the
    gradients of policy and value, and the targets.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=5, passes=1,
    ...                              batch_size=None, seed=0)
    >>> agent = rl.A2C.for_env("CartPole-v1", seed=0)
    >>> history = agent.fit(rollouts, epochs=2, verbose=0)
    >>> len(history.history["value_loss"])
    2

    Reference:
        - [Mnih et al., 2016](https://arxiv.org/abs/1602.01783).
    """

    statistics_names = (*OnPolicyAgent.statistics_names, "explained_variance")
    learns_from_trajectories = True
    default_adam = {"learning_rate": 1e-3}

    @classmethod
    def own_rollout(cls, observation_space: gymnasium.Space[Any]) -> OwnRollout:
        """Returns the default settings of rollouts."""
        # In epochs of a single short round, Keras' overhead would dominate.
        return OwnRollout(
            steps=64, passes=1, batch_size=None, shortest=8, rounds_per_epoch=32
        )

    def loss_terms(
        self, policy: Distribution, value: Tensor, batch: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Computes the policy gradient loss and the explained variance."""
        terms = super().loss_terms(policy, value, batch)
        terms["explained_variance"] = losses.explained_variance(
            batch["value"], batch["returns"], batch["weight"]
        )
        return terms
