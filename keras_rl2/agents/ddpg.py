"""Deep deterministic policy gradient."""

from collections.abc import Sequence
from typing import Literal
from typing import Self

import keras

from keras_rl2.agents.agent import as_given
from keras_rl2.agents.td3 import TD3
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.exploration.get import GivenNoise
from keras_rl2.spaces.space_configs import GivenSpace
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
        actor: `keras.Model` from observations to `[B, A]`, before tanh; or
            after it, if the network itself ends in a tanh.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`.
        target_every: int. Number of updates per move of the target networks.
            Defaults to `1`.
        exploration: float, str, dict, `ExplorationNoise` or None. Noise added
            to actions, in units of half their range; a number is the scale of
            `GaussianNoise`. Defaults to `0.1`.
        gamma: float. Discount factor. Defaults to `0.99`.
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped, those of the actor and of the critics separately; None for
            no clipping. Defaults to `None`.
        tau: float. Polyak coefficient, above 0 and at most 1: a target network
            moves by this fraction towards the network that it follows; 1
            copies it. Defaults to `0.005`.
        observation_space: `gymnasium.Space` or its config. Space of one
            environment's observations; None to take it from the first
            environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. Space of one
            environment's actions; None to take it from the first environment.
            Defaults to `None`.
        seed: int or None. Seeds the sampling of `act`. Defaults to `None`.
        name: str or None. Name of the model. Defaults to `None`.
        dtype: str or None. Keras dtype policy; None for the global one.
            Defaults to `None`.

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

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,  # own words
        *,
        target_every: int = 1,  # own default, words
        exploration: GivenNoise | None = 0.1,
        gamma: float = 0.99,
        max_gradient_norm: float | None = None,
        tau: float = 0.005,
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(
            actor,
            critic,
            policy_delay=1,
            target_noise=0.0,
            target_every=target_every,
            exploration=exploration,
            gamma=gamma,
            max_gradient_norm=max_gradient_norm,
            tau=tau,
            observation_space=observation_space,
            action_space=action_space,
            seed=seed,
            name=name,
            dtype=dtype,
        )

    @classmethod
    @as_given
    def for_env(  # type: ignore[override]
        cls,
        env: GivenEnv,
        *,
        hidden: Sequence[int] | None = None,
        activation: str | None = None,
        normalize_observations: bool = False,
        normalization: Literal["none", "layer", "batch", "spectral"]
        | None = None,
        initialization: Literal["orthogonal", "fan_in"] | None = None,
        memory: keras.layers.Layer | None = None,
        shared: bool | None = None,
        target_every: int = 1,
        exploration: GivenNoise | None = 0.1,
        gamma: float = 0.99,
        max_gradient_norm: float | None = None,
        tau: float = 0.005,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> Self:
        """Makes a compiled agent with default networks for an environment.

        Args:
            env: An environment, vector environment, id string or function that
                makes an environment.
            hidden: Sequence of ints or None. Widths of the hidden layers,
                after the convolutions where observations are images; None for
                the algorithm's default, or that of the convolutional network.
                Defaults to `None`.
            activation: str or None. Activation of the hidden layers; None for
                the algorithm's default. Defaults to `None`.
            normalize_observations: bool. Whether the networks begin with an
                `ObservationNormalization` layer. Defaults to `False`.
            normalization: str or None. Normalization of the hidden layers:
                `"layer"`, `"batch"`, `"spectral"` or `"none"`, see
                `keras_rl2.networks.mlp`; None for the algorithm's default.
                Defaults to `None`.
            initialization: str or None. `"orthogonal"`, with small weights in
                the last layer of an actor; `"fan_in"`, the default of
                PyTorch's layers; None for the algorithm's default. Defaults to
                `None`.
            memory: RNN cell of Keras or None, e.g.
                `keras.layers.LSTMCell(128)`. Makes the network recurrent: all
                outputs share the cell, and each has its own hidden layers
                after it. See `keras_rl2.networks.MemoryNetwork`. Defaults to
                `None`.
            shared: bool or None. Whether policy and value share all layers but
                their outputs, as published for images; None where the
                observation contains an image. Defaults to `None`.
            target_every: int. Number of updates per move of the target
                networks. Defaults to `1`.
            exploration: float, str, dict, `ExplorationNoise` or None. Noise
                added to actions, in units of half their range; a number is the
                scale of `GaussianNoise`. Defaults to `0.1`.
            gamma: float. Discount factor. Defaults to `0.99`.
            max_gradient_norm: float or None. Global norm to which gradients
                are clipped, those of the actor and of the critics separately;
                None for no clipping. Defaults to `None`.
            tau: float. Polyak coefficient, above 0 and at most 1: a target
                network moves by this fraction towards the network that it
                follows; 1 copies it. Defaults to `0.005`.
            seed: int or None. Seeds weights, updates and `act`. Defaults to
                `None`.
            name: str or None. Name of the model. Defaults to `None`.
            dtype: str or None. Keras dtype policy of the agent and its
                networks, e.g. `"mixed_float16"`; None for the global one.
                Defaults to `None`.

        Returns:
            The agent. Images are processed by a convolutional network, other
            observations by an MLP.

        Raises:
            ValueError: If a space of the environment is not supported, or an
                argument is out of range.
            TypeError: If the algorithm does not take an argument.
        """
        raise NotImplementedError
