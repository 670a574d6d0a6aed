"""TD3 with behaviour cloning."""

from typing import Unpack

import keras

from keras_rl2 import losses
from keras_rl2.agents.td3 import TD3
from keras_rl2.agents.td3 import TD3Arguments
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch


@keras.saving.register_keras_serializable(package="keras_rl2")
class TD3BC(TD3):
    """TD3 with a policy that stays near the actions of its data.

    Learns from a fixed dataset, for Box actions. Nothing is known of other
    actions than its own: a policy that only follows the critic would choose
    those that the critic overestimates. The losses are those of `TD3` except
    the policy's,

        L_π = mean((π(s) - a)² - λ Q_1(s, π(s))),   λ = α / mean |Q_1(s, π(s))|

    where a is the action of the data, and λ is a constant. `for_env(...,
    normalize_observations=True)` is recommended, as published, for stable
    training. The default learning rate is 0.0003.

    Args:
        alpha: float. α, weight of the Q-values relative to cloning; 0 is
            cloning alone. Defaults to `2.5`.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("Pendulum-v1", batch_size=32, warm_up=64,
    ...                           updates_per_round=4, rounds_per_epoch=1,
    ...                           seed=0)
    >>> agent = rl.TD3BC.for_env("Pendulum-v1", hidden=(32,), seed=0,
    ...                          normalize_observations=True)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:4]
    ['actor_loss', 'clipped_observations', 'critic_loss', 'env_steps']

    Reference:
        - [Fujimoto and Gu, 2021](https://arxiv.org/abs/2106.06860).
    """

    takes_memory = False
    default_adam = {"learning_rate": 3e-4, "name": "actor"}

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        *,
        alpha: float = 2.5,
        **kwargs: Unpack[TD3Arguments],
    ) -> None:
        check_in_range(alpha=(alpha, 0.0, 1e12))
        super().__init__(actor, critic, **kwargs)
        self.alpha = alpha

    def actor_losses(
        self, value: Tensor, action: Tensor, batch: Batch
    ) -> Tensor:
        """Returns the losses `[B]`: distances from the data, minus λ Q_1."""
        return losses.behavior_regularized_value(
            value, action, batch["action"], self.alpha
        )
