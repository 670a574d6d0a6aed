"""Conservative Q-learning of Box actions."""

import math
from typing import Any
from typing import Unpack

import gymnasium
import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.cql import CQL
from keras_rl2.agents.cql import check_weight
from keras_rl2.agents.sac import SAC
from keras_rl2.agents.sac import SACArguments
from keras_rl2.basics.arguments import check_positive
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import PolicyHead
from keras_rl2.distributions import policy_head
from keras_rl2.networks import checks as network_checks
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates import critics
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class BoxCQL(CQL, SAC):
    """Conservative Q-learning of Box actions: `SAC` with a penalty.

    `CQL` makes it for Box actions. The sum over actions is estimated from
    samples of three distributions: uniform, the policy, and the policy at the
    next observation; each sample is weighted by its inverse probability.
    Losses are ½ mean squares: halve the `alpha` of implementations without the
    factor ½.

    Args:
        alpha: float. Weight of the penalty. It has the unit of Q-values: among
            actions that differ by less, the policy imitates the data instead
            of finding better actions. Defaults to `2.5`.
        num_samples: int. For Box actions, number of samples from each of the
            three distributions. Defaults to `10`.
        threshold: float or None. See `CQL`; published values for MuJoCo are 5
            and 10. Defaults to `None`.

    Raises:
        ValueError: If a number is out of range or a network does not fit.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.agents.BoxCQL.for_env("Pendulum-v1", hidden=(32,),
    ...                                  threshold=5.0, seed=0)
    >>> agent.alpha, agent.threshold, agent.num_samples
    (2.5, 5.0, 10)
    >>> agent.act([1.0, 0.0, 0.5], deterministic=True).shape
    (1,)

    Reference:
        - [Kumar et al., 2020](https://arxiv.org/abs/2006.04779), appendix F.
    """

    action_kinds = (gymnasium.spaces.Box,)
    statistics_names = (*SAC.statistics_names, "cql_penalty", "alpha")

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        *,
        alpha: float = 2.5,
        num_samples: int = 10,
        threshold: float | None = None,
        **kwargs: Unpack[SACArguments],
    ) -> None:
        check_positive(num_samples=num_samples)
        check_weight(alpha, threshold)
        SAC.__init__(self, actor, critic, **kwargs)
        self._weigh_penalty(alpha, threshold)
        self.num_samples = num_samples

    @classmethod
    def make_policy_head(cls, action_space: gymnasium.Space[Any]) -> PolicyHead:
        """Returns a squashed Gaussian's head."""
        network_checks.check_action_kind(cls, action_space, cls.action_kinds)
        return policy_head(action_space, squash=True)

    def objectives(self) -> dict[str, Objective]:
        """Returns the losses of the critics, and of policy and temperature."""
        own = self._own_variables
        return {
            **super().objectives(),
            "critic": Objective(self._critic_terms, self.critics, own),
        }

    def critic_terms(self, values: list[Tensor], batch: Batch) -> Terms:
        """Computes the loss of the critics on a minibatch, with the penalty.

        Args:
            values: list of `[B]` float32. Each critic's Q-values of the
                actions taken, from the forward pass.
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            dict: `loss`, a scalar, which is minimised; `td_error` `[B]`; other
            scalars for the logs.
        """
        terms = super().critic_terms(values, batch)
        encoded = self.task.encode(batch["observation"])
        action, log_prob = self.sampled_actions(batch)
        batch_size, samples = log_prob.shape[0], log_prob.shape[1]
        if batch_size is None:
            batch_size = ops.shape(log_prob)[0]
        # [B, ...] -> [B * N, ...]
        repeated = map_leaves(
            lambda each: ops.repeat(each, samples, axis=0), encoded
        )
        flat = ops.reshape(action, (-1, action.shape[-1]))
        each_value = critics.action_values(
            self.critics, repeated, flat, training=True
        )
        penalties = [
            losses.sampled_conservative_q(
                ops.reshape(value, (batch_size, samples)), log_prob, taken
            )
            for value, taken in zip(each_value, values, strict=True)
        ]
        return self.conservative_terms(terms, penalties, batch["weight"])

    def sampled_actions(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Draws the actions at which Q-values are lowered.

        Args:
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            Actions `[B, 3 N, A]` in the unit box and their log-probabilities
            `[B, 3 N]`: uniform samples, the policy's, and the policy's at the
            next observations. Both are constants.
        """
        encoded = self.task.encode(batch["observation"])
        shape = (
            ops.shape(leaves(encoded)[0])[0],
            self.num_samples,
            *self.policy_head.action_shape,
        )
        uniform = self.draw_uniform(shape, 2)
        density = -math.log(2.0) * shape[-1]
        drawn = [
            (uniform, ops.full_like(uniform[:, :, 0], density)),
            self._of_policy(batch["observation"], shape, 3),
            self._of_policy(batch["next_observation"], shape, 4),
        ]
        actions, log_probs = zip(*drawn, strict=True)
        return (
            ops.stop_gradient(ops.concatenate(actions, axis=1)),
            ops.stop_gradient(ops.concatenate(log_probs, axis=1)),
        )

    def _of_policy(
        self, observation: Tree[Tensor], shape: tuple[Any, ...], stream: int
    ) -> tuple[Tensor, Tensor]:
        """Draws actions `[B, N, A]` of the policy, with log-probabilities."""
        batch_size, samples, size = shape
        parameters = ops.repeat(self(observation), samples, axis=0)
        noise = self.draw_normal((batch_size * samples, size), stream)
        policy = self.policy_head(parameters)
        action, log_prob = policy.sample_and_log_prob(noise)
        return (
            ops.reshape(action, shape),
            ops.reshape(log_prob, (batch_size, samples)),
        )


CQL.kinds[gymnasium.spaces.Box] = BoxCQL
