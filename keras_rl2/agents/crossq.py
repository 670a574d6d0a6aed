"""CrossQ: soft actor-critic without target networks."""

from typing import Unpack

import gymnasium
import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.sac import SAC
from keras_rl2.agents.sac import CrossQArguments
from keras_rl2.basics.shapes import Tensor
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class CrossQ(SAC):
    """Soft actor-critic with batch normalization instead of targets, for Box.

    The critics value the next states themselves. What they are trained on and
    what they are asked for have different distributions; so both run through
    each critic as one batch, in training mode, and batch normalization makes
    both alike:

        [Q_i(s, a), Q_i(s', a')] = critic_i([s, s'], [a, a']),   a' ~ π(s')
        y = r + discount (min_i Q_i(s', a') - α log π(a'|s'))
        L_Q = Σ_i ½ mean((stop_gradient(y) - Q_i(s, a))²)

    The losses of policy and temperature are those of `SAC`, with critics in
    inference mode. Of n updates, floor(n / `policy_delay`) update policy and
    temperature too. `actor_loss` is the sum of both, the last one in updates
    between, initially 0; `entropy` is that at the next states.

    The networks of `for_env` have a `keras.layers.BatchNormalization` before
    each dense layer, and hidden layers of 256 units, so that they learn on a
    laptop. The published critics have 2048, which need a GPU: make them by
    `keras_rl2.networks.critic_for(..., normalization="batch")`. The published
    batch renormalization begins to differ from batch normalization after
    100,000 updates. Networks of your own should contain such layers, too:
    without them, critics that follow themselves may diverge.

    Actor and critics each have an optimizer, as an actor that is updated less
    often needs its own count of updates. The default is Adam with a learning
    rate of 0.001 and β_1 = 0.5, as published.

    Args:
        actor: `keras.Model` from observations to `[B, 2A]`, means and log
            standard deviations of a Box policy before tanh.
        policy_delay: int. Number of updates of the critics per update of
            policy and temperature. Defaults to `3`.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("Pendulum-v1", batch_size=32, warm_up=64,
    ...                           updates_per_round=4, rounds_per_epoch=1,
    ...                           seed=0)
    >>> agent = rl.CrossQ.for_env("Pendulum-v1", hidden=(32,), seed=0)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:4]
    ['actor_loss', 'critic_loss', 'entropy', 'env_steps']
    >>> agent.target_pairs
    []

    Reference:
        - [Bhatt et al., 2024](https://openreview.net/forum?id=PczQtTsTIX).
    """

    action_kinds = (gymnasium.spaces.Box,)
    has_critic_optimizer = True
    takes_memory = False
    default_adam = {"learning_rate": 1e-3, "beta_1": 0.5, "name": "actor"}
    default_normalization = "batch"
    # Without batch normalization, its critics would follow themselves.
    takes_network = False
    takes_critic_dropout = False
    actor_statistics = ()

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        *,
        policy_delay: int = 3,
        **kwargs: Unpack[CrossQArguments],
    ) -> None:
        super().__init__(actor, critic, policy_delay=policy_delay, **kwargs)

    def make_targets(self) -> None:
        """Makes none: the critics value the next states themselves."""

    def _critic_terms(self, batch: Batch) -> Terms:
        """Runs each critic once, on present and next states together."""
        following, alpha = batch["next_observation"], self.current_temperature
        next_action, log_prob = self.sample_with_log_prob(following, 0)
        encoded, action = map_leaves(
            lambda one, other: ops.concatenate([one, other], axis=0),
            (self.policy.encode(batch["observation"]), batch["action"]),
            (self.policy.encode(following), next_action),
        )
        # [2 * B, N] -> [B, N], [B, N]
        halves = [
            ops.split(outputs, 2)
            for outputs in self.critic_outputs(
                self.critics, encoded, action, training=True
            )
        ]
        later = [self.value_distribution.mean(each) for _, each in halves]
        next_value = losses.soft_value(log_prob, later, alpha)
        terms = self.critic_terms(
            [now for now, _ in halves], {**batch, "next_value": next_value}
        )
        return {**terms, "entropy": -ops.mean(log_prob), "temperature": alpha}

    def next_value(self, batch: Batch) -> Tensor:
        """Returns the values of the next states from the one forward pass."""
        return batch["next_value"]

    def actor_terms(self, batch: Batch) -> Terms:
        """Computes the losses of policy and temperature on a minibatch."""
        return {"loss": super().actor_terms(batch)["loss"]}
