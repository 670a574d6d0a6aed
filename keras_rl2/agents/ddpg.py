"""Deep deterministic policy gradient."""

from typing import Unpack

import keras

from keras_rl2.agents.td3 import TD3
from keras_rl2.agents.td3 import DDPGArguments
from keras_rl2.updates.critics import GivenCritics


@keras.saving.register_keras_serializable(package="keras_rl2")
class DDPG(TD3):
    """Deep deterministic policy gradient, for Box actions.

    TD3 without its three remedies: learns Q-values of a deterministic policy
    from replay, and updates the policy along their gradient. With π = tanh of
    the actor's output, and a prime for target networks, which move at each
    update,

        L_Q = ½ mean((r + discount Q'(s', π'(s')) - Q(s, a))²)
        L_π = -mean(Q(s, π(s)))

    Both gradients are computed with the weights before the update. The
    published noise is `rl.exploration.OrnsteinUhlenbeckNoise()`; Gaussian
    noise, the default, works as well (Fujimoto et al., 2018). The default
    learning rate is 0.001.

    Args:
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`.
        target_every: int. Number of updates per move of the target networks.
            Defaults to `1`.

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

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        *,
        num_critics: int = 1,
        target_every: int = 1,
        **kwargs: Unpack[DDPGArguments],
    ) -> None:
        super().__init__(
            actor,
            critic,
            num_critics=num_critics,
            policy_delay=1,
            target_noise=0.0,
            target_every=target_every,
            **kwargs,
        )
