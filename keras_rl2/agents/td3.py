"""Twin delayed deep deterministic policy gradient."""

from typing import Any

import keras
import tensorflow as tf
from keras import ops

from keras_rl2.agents import network_checks
from keras_rl2.agents.deterministic_agent import DeterministicAgent
from keras_rl2.callbacks import TargetNetworkSync
from keras_rl2.shapes import Tensor


@keras.saving.register_keras_serializable(package="keras_rl2")
class TD3(DeterministicAgent):
    """Twin delayed deep deterministic policy gradient, for Box actions.

    DDPG with three remedies for values that are too high: the smaller of two
    target critics counts; target actions are disturbed, so that values are
    smooth; and the policy is updated less often than the critics. With
    π = tanh of the actor's output, and a prime for target networks,

        a' = clip(π'(s') + clip(σ N(0, 1), -c, c), -1, 1)
        L_Q = Σ_i ½ mean((r + discount min_i Q'_i(s', a') - Q_i(s, a))²)
        L_π = -mean(Q_1(s, π(s)))

    Of n updates, floor(n / `policy_delay`) are also updates of the actor, and
    target networks follow by 0.005 at the same ones. There both gradients are
    those of the weights before the update, where Stable-Baselines3 updates the
    critics first. Their learning rate is 0.001 by default. The other updates
    report the last loss of the actor, at first 0.

    Args:
        actor: `keras.Model` from observations to `[B, A]`, before tanh.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`; or a pair of such models. A single
            one gets a twin like it, with weights of its own.
        policy_delay: int. Updates from one of the actor to the next. Defaults
            to `2`.
        target_noise: float. σ, standard deviation of the noise of target
            actions, in half the range of an action. Defaults to `0.2`.
        target_noise_clip: float. c, what that noise is clipped to. Defaults
            to `0.5`.
        exploration: float, str, dict, `ExplorationNoise` or None. Noise of
            actions in half their range; a number is the scale of
            `GaussianNoise`. Defaults to `0.1`.
        **kwargs: Arguments of `OffPolicyAgent`: `gamma`, `max_gradient_norm`
            (of the actor's and the critics' gradient, each for itself),
            `observation_space`, `action_space`, `seed`, `name`, `dtype`.

    Raises:
        ValueError: If a number is out of range or a network does not fit.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("Pendulum-v1", batch_size=32, warm_up=64,
    ...                           updates_per_round=4, rounds_per_epoch=1,
    ...                           seed=0)
    >>> agent = rl.TD3.for_env("Pendulum-v1", hidden=(32,), seed=0)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:4]
    ['actor_loss', 'critic_loss', 'env_steps', 'episode_length']

    Reference:
        - [Fujimoto et al., 2018](https://arxiv.org/abs/1802.09477).
    """

    def __init__(
        self,
        actor: keras.Model,
        critic: Any,
        *,
        policy_delay: int = 2,
        target_noise: float = 0.2,
        target_noise_clip: float = 0.5,
        exploration: Any = 0.1,
        **kwargs: Any,
    ) -> None:
        if not isinstance(policy_delay, int) or policy_delay < 1:
            raise ValueError(
                "Expected `policy_delay` to be a number of updates, at least "
                f"1. Received: policy_delay={policy_delay!r}"
            )
        network_checks.check_in_range(
            target_noise=(target_noise, 0.0, 1e12),
            target_noise_clip=(target_noise_clip, 0.0, 1e12),
        )
        super().__init__(actor, critic, exploration=exploration, **kwargs)
        self.policy_delay = policy_delay
        self.target_noise = target_noise
        self.target_noise_clip = target_noise_clip
        self.last_actor_loss = self.add_weight(
            shape=(),
            initializer="zeros",
            dtype="float32",
            trainable=False,
            name="last_actor_loss",
        )
        self._bind_requested()

    def default_sync(self) -> TargetNetworkSync:
        """Returns the callback that `fit` inserts where there is none."""
        return TargetNetworkSync(tau=0.005, every=self.policy_delay)

    def target_action(self, encoded: Tensor) -> Tensor:
        """Returns the target actor's actions with noise, in the unit box."""
        action = super().target_action(encoded)
        noise = self.target_noise * self.draw_normal(ops.shape(action), 0)
        noise = ops.clip(noise, -self.target_noise_clip, self.target_noise_clip)
        return ops.clip(action + noise, -1.0, 1.0)

    def improve_actor(self, encoded: Tensor, weight: Tensor) -> Tensor:
        """Updates the actor if that is due, and returns its last loss."""

        def improve() -> Tensor:
            return super(TD3, self).improve_actor(encoded, weight)

        if self.policy_delay == 1:
            loss = improve()
        else:
            made = ops.convert_to_tensor(self.updates) + 1
            loss = tf.cond(
                made % self.policy_delay == 0,
                improve,
                lambda: ops.convert_to_tensor(self.last_actor_loss),
            )
        self.last_actor_loss.assign(loss)
        return loss

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {
            **super().get_config(),
            "policy_delay": self.policy_delay,
            "target_noise": self.target_noise,
            "target_noise_clip": self.target_noise_clip,
        }
