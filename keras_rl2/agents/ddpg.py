"""Deep deterministic policy gradient."""

from typing import Any

import keras

from keras_rl2.agents.td3 import TD3


@keras.saving.register_keras_serializable(package="keras_rl2")
class DDPG(TD3):
    """Deep deterministic policy gradient, for Box actions.

    TD3 without its three remedies: learns Q-values of a deterministic policy
    from replay, and moves the policy along their gradient. With π = tanh of
    the actor's output, and a prime for target networks, which follow at each
    update,

        L_Q = ½ mean((r + discount Q'(s', π'(s')) - Q(s, a))²)
        L_π = -mean(Q(s, π(s)))

    Both gradients are those of the weights before the update. The published
    noise is `rl.exploration.OrnsteinUhlenbeckNoise()`; normal noise, the
    default, does as well (Fujimoto et al., 2018). Learning rates are 0.001 by
    default.

    Args:
        actor: `keras.Model` from observations to `[B, A]`, before tanh; or
            after it, of a network that ends in a tanh itself.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`.
        exploration: float, str, dict, `ExplorationNoise` or None. Noise of
            actions in half their range; a number is the scale of
            `GaussianNoise`. Defaults to `0.1`.
        target_every: int. Updates from one move of target networks to the
            next. Defaults to `1`.
        **kwargs: Arguments of `OffPolicyAgent`: `gamma`, `max_gradient_norm`
            (of the actor's and the critic's gradient, each for itself), `tau`,
            `observation_space`, `action_space`, `seed`, `name`, `dtype`.

    Raises:
        ValueError: If a number is out of range or a network does not fit.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("Pendulum-v1", batch_size=32, warm_up=64,
    ...                           updates_per_round=4, rounds_per_epoch=1,
    ...                           seed=0)
    >>> agent = rl.DDPG.for_env(
    ...     "Pendulum-v1", hidden=(32,), seed=0,
    ...     exploration=rl.exploration.OrnsteinUhlenbeckNoise())
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:4]
    ['actor_loss', 'critic_loss', 'env_steps', 'episode_length']

    Reference:
        - [Lillicrap et al., 2015](https://arxiv.org/abs/1509.02971).
        - [Fujimoto et al., 2018](https://arxiv.org/abs/1802.09477).
    """

    number_of_critics = 1
    arguments_not_taken = frozenset(
        {"policy_delay", "target_noise", "target_noise_clip"}
    )

    def __init__(
        self,
        actor: keras.Model,
        critic: Any,
        *,
        target_every: int = 1,
        **kwargs: Any,
    ) -> None:
        self.refuse_arguments(kwargs)
        super().__init__(
            actor,
            critic,
            policy_delay=1,
            target_noise=0.0,
            target_every=target_every,
            **kwargs,
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        config = super().get_config()
        for name in self.arguments_not_taken:
            del config[name]
        return config
