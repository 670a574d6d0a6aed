"""Proximal policy optimisation."""

import warnings
from typing import Unpack

import keras
import tensorflow as tf
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.on_policy_agent import OnPolicyAgent
from keras_rl2.agents.on_policy_agent import OnPolicyArguments
from keras_rl2.basics import replicas
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.arguments import present
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Distribution
from keras_rl2.losses import statistics
from keras_rl2.networks.model_layers import mode_layers
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Terms


class PPOArguments(OnPolicyArguments, total=False):
    """Arguments of `PPO` for subclasses; see there."""

    clip_ratio: float | keras.optimizers.schedules.LearningRateSchedule
    value_clip_range: float | None
    normalize_advantages: bool
    target_kl: float | None
    gae_lambda: float


@keras.saving.register_keras_serializable(package="keras_rl2")
class PPO(OnPolicyAgent):
    """Proximal policy optimisation with a clipped surrogate objective.

    Improves the policy by several passes of minibatch updates over each
    rollout. The loss does not reward changing the probability of an action by
    more than `clip_ratio`:

        L = mean(max(-r A, -clip(r, 1 - c, 1 + c) A))
            + value_coefficient * mean((V - R)^2)
            - entropy_coefficient * mean(H)

    where r is the ratio of an action's probability to that under the policy
    that acted, A the advantage, R the return, and H the entropy of the policy.
    Supports Discrete, MultiDiscrete, MultiBinary and Box actions, and Dict and
    Tuple of these. Defaults are those of the paper for MuJoCo, with the details
    of Andrychowicz et al., 2021.

    Args:
        clip_ratio: float or `keras.optimizers.schedules.LearningRateSchedule`
            over updates. Distance of a probability ratio from 1 beyond which
            the loss does not reward a change. Defaults to `0.2`.
        value_clip_range: float or None. Maximum change of a value from its
            estimate before the round's updates; None for no clipping. Defaults
            to `None`.
        target_kl: float or None. Once the approximate KL divergence exceeds
            1.5 times this number, the remaining updates of the round are
            skipped. Defaults to `None`.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=64, batch_size=64,
    ...                              seed=0)
    >>> agent = rl.PPO.for_env("CartPole-v1", gamma=0.98, seed=0)
    >>> history = agent.fit(rollouts, epochs=2, verbose=0)
    >>> len(history.history["episode_return"])
    2

    Reference:
        - [Schulman et al., 2017](https://arxiv.org/abs/1707.06347).
        - [Andrychowicz et al., 2021](https://arxiv.org/abs/2006.05990).
    """

    shared_numbers = (
        *OnPolicyAgent.shared_numbers,
        *("clip_ratio", "value_clip_range", "target_kl"),
    )
    statistics_names = (
        *OnPolicyAgent.statistics_names,
        *("approx_kl", "clip_fraction"),
    )

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,
        *,
        clip_ratio: float
        | keras.optimizers.schedules.LearningRateSchedule = 0.2,
        value_clip_range: float | None = None,
        normalize_advantages: bool = True,
        target_kl: float | None = None,
        gae_lambda: float = 0.95,
        **kwargs: Unpack[OnPolicyArguments],
    ) -> None:
        if not isinstance(
            clip_ratio, keras.optimizers.schedules.LearningRateSchedule
        ):
            check_in_range(clip_ratio=(clip_ratio, 0.0, 1e6))
        limits = present(value_clip_range=value_clip_range, target_kl=target_kl)
        check_in_range(
            **{limit: (value, 0.0, 1e6) for limit, value in limits.items()}
        )
        super().__init__(
            actor,
            critic,
            normalize_advantages=normalize_advantages,
            gae_lambda=gae_lambda,
            **kwargs,
        )
        self.clip_ratio = clip_ratio
        self.value_clip_range = value_clip_range
        self.target_kl = target_kl
        # Updates made in the round, -1 once they are skipped.
        self._made = tf.Variable(0, trainable=False, dtype="int64")
        self._idle_rounds = tf.Variable(0, trainable=False, dtype="int64")

    def check_trained(self) -> None:
        """Warns of layers with which probability ratios do not begin at 1."""
        super().check_trained()
        names = [layer.name for layer in mode_layers(self.actor)]
        if names:
            warnings.warn(
                "Expected an actor that computes the same in training as when "
                "acting, so that probability ratios begin at 1 in each round. "
                f"Received: {names} of {self.actor.name!r}",
                stacklevel=6,
            )

    def _terms(self, batch: Batch) -> Terms:
        """Adds whether the policy is still near the one that acted."""
        terms = super()._terms(batch)
        if self.target_kl is not None:
            near = tf.logical_not(terms["approx_kl"] > 1.5 * self.target_kl)
            # The update that exceeds `target_kl` is the last one in the logs.
            counted = self._made >= 0
            terms |= {"wanted": counted & near, "counted": counted}
        return terms

    def update(self, batch: Batch) -> Terms:
        """Makes an update unless one of the round has exceeded `target_kl`."""
        terms = super().update(batch)
        if "wanted" in terms:
            replicas.once(lambda: self._count(terms["wanted"]))
        return terms

    def _count(self, wanted: Tensor) -> None:
        """Counts the updates of a round, and rounds without any."""
        idle = tf.logical_not(wanted) & (self._made == 0)
        self._idle_rounds.assign_add(tf.cast(idle, "int64"))
        end = tf.constant(-1, "int64")
        self._made.assign(tf.where(wanted, self._made + 1, end))

    def get_metrics_result(self) -> dict[str, Tensor]:
        """Returns the logs, and warns of a round without an update, once."""
        if tf.executing_eagerly() and self._idle_rounds.numpy() > 0:
            self._idle_rounds.assign(tf.int64.min)
            warnings.warn(
                "Expected a policy within `target_kl` before the first update "
                f"of a round. Received: target_kl={self.target_kl}, which "
                "skipped all updates of a round",
                stacklevel=6,
            )
        return super().get_metrics_result()

    def loss_terms(
        self, policy: Distribution, value: Tensor, batch: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Computes the clipped surrogate, the value loss and the entropy."""
        log_prob = self.log_prob_of(policy, batch["action"])
        old_log_prob, weight = batch["log_prob"], batch["weight"]
        advantage = statistics.of_components(self.advantages(batch), log_prob)
        clip_ratio = self._present_clip_ratio()
        if self.value_clip_range is None:
            value_losses = ops.square(batch["returns"] - value)
        else:
            value_losses = losses.clipped_value(
                value, batch["value"], batch["returns"], self.value_clip_range
            )
        terms = self.total_loss(
            losses.clipped_surrogate(
                log_prob, old_log_prob, advantage, clip_ratio
            ),
            value_losses,
            policy,
            weight,
        )
        weight = statistics.of_components(weight, log_prob)
        kl = losses.approximate_kl(log_prob, old_log_prob)
        clipped = losses.clip_fraction(log_prob, old_log_prob, clip_ratio)
        return {
            **terms,
            "approx_kl": statistics.weighted_mean(kl, weight),
            "clip_fraction": statistics.weighted_mean(clipped, weight),
        }

    def _present_clip_ratio(self) -> Tensor | float:
        """Returns the clip ratio, or the schedule's value at this update."""
        if callable(self.clip_ratio):
            return self.clip_ratio(self.optimizer.iterations)
        return self.clip_ratio

    @property
    def update_variables(self) -> list[tf.Variable]:
        """Further variables of an update; see `Agent.update_variables`."""
        return [*super().update_variables, self._made, self._idle_rounds]

    def begin_round(self) -> None:
        """Allows the updates of the new round."""
        super().begin_round()
        self._made.assign(0)
