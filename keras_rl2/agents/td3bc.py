"""TD3 with behaviour cloning."""

from typing import Any

import keras

from keras_rl2 import losses
from keras_rl2.agents.objective import Batch
from keras_rl2.agents.td3 import TD3
from keras_rl2.arguments import check_in_range
from keras_rl2.shapes import Tensor


@keras.saving.register_keras_serializable(package="keras_rl2")
class TD3BC(TD3):
    """TD3 whose policy stays near the actions of its data, for Box actions.

    Learns from a fixed dataset, whose actions are all that anything is known
    of: a policy that only follows its critic would choose those that the critic
    is wrong about. With the losses of `TD3` but for the policy's,

        L_π = mean((π(s) - a)² - λ Q_1(s, π(s))),   λ = α / mean |Q_1(s, π(s))|

    where a is the action of the data, and λ counts as a constant.
    `for_env(..., normalize_observations=True)` is recommended: as published,
    it makes learning more stable. Learning rates are 0.0003 by default.

    Args:
        actor: `keras.Model` from observations to `[B, A]`, before tanh; or
            after it, of a network that ends in a tanh itself.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`; or a pair of such models. A single
            one gets a twin like it, with weights of its own.
        alpha: float. α, what values count beside cloning; 0 is cloning alone.
            Defaults to `2.5`.
        **kwargs: Arguments of `TD3`: `policy_delay`, `target_noise`,
            `target_noise_clip`, `exploration`, `target_every`; and of
            `OffPolicyAgent`: `gamma`, `max_gradient_norm`, `tau`,
            `observation_space`, `action_space`, `seed`, `name`, `dtype`.

    Raises:
        ValueError: If a number is out of range or a network does not fit.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("Pendulum-v1", batch_size=32, warm_up=64,
    ...                           updates_per_round=4, rounds_per_epoch=1,
    ...                           seed=0)
    >>> agent = rl.TD3BC.for_env("Pendulum-v1", hidden=(32,), seed=0,
    ...                          normalize_observations=True)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:4]
    ['actor_loss', 'critic_loss', 'env_steps', 'episode_length']

    Reference:
        - [Fujimoto and Gu, 2021](https://arxiv.org/abs/2106.06860).
    """

    def __init__(
        self,
        actor: keras.Model,
        critic: Any,
        *,
        alpha: float = 2.5,
        **kwargs: Any,
    ) -> None:
        check_in_range(alpha=(alpha, 0.0, 1e12))
        super().__init__(actor, critic, **kwargs)
        self.alpha = alpha

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the optimizer that `compile("auto")` uses."""
        return keras.optimizers.Adam(3e-4, name="actor")

    def actor_losses(
        self, value: Tensor, action: Tensor, batch: Batch
    ) -> Tensor:
        """Says what each action costs: its distance from the data's, -λ Q_1.

        Args:
            value: `[B]` float32. What the first critic thinks of the actions.
            action: `[B, A]` float32. The policy's, in the unit box.
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            `[B]` float32, to minimise.
        """
        return losses.behavior_regularized_value(
            value, action, batch["action"], self.alpha
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {**super().get_config(), "alpha": self.alpha}
