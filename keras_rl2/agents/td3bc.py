"""TD3 with behaviour cloning."""

from collections.abc import Sequence
from typing import Literal
from typing import Self

import keras

from keras_rl2 import losses
from keras_rl2.agents.agent import as_given
from keras_rl2.agents.td3 import TD3
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.envs.vector_env import GivenEnv
from keras_rl2.exploration.get import GivenNoise
from keras_rl2.spaces.space_configs import GivenSpace
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
        actor: `keras.Model` from observations to `[B, A]`, before tanh; or
            after it, if the network itself ends in a tanh.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`; or a pair of such models. For a
            single model, the agent makes a second one of the same
            architecture, with its own weights.
        alpha: float. α, weight of the Q-values relative to cloning; 0 is
            cloning alone. Defaults to `2.5`.
        policy_delay: int. Number of updates of the critics per update of the
            actor. Defaults to `2`.
        target_noise: float. σ, standard deviation of the noise added to target
            actions, in units of half an action's range. Defaults to `0.2`.
        target_noise_clip: float. c, bound to which the noise of target actions
            is clipped, in the same units. Defaults to `0.5`.
        exploration: float, str, dict, `ExplorationNoise` or None. Noise added
            to actions, in units of half their range; a number is the scale of
            `GaussianNoise`. Defaults to `0.1`.
        target_every: int or None. Number of updates per move of the target
            networks; None for `policy_delay`. Defaults to `None`.
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
    >>> agent = rl.TD3BC.for_env("Pendulum-v1", hidden=(32,), seed=0,
    ...                          normalize_observations=True)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:4]
    ['actor_loss', 'clipped_observations', 'critic_loss', 'env_steps']

    Reference:
        - [Fujimoto and Gu, 2021](https://arxiv.org/abs/2106.06860).
    """

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        *,
        alpha: float = 2.5,
        policy_delay: int = 2,
        target_noise: float = 0.2,
        target_noise_clip: float = 0.5,
        exploration: GivenNoise | None = 0.1,
        target_every: int | None = None,
        gamma: float = 0.99,
        max_gradient_norm: float | None = None,
        tau: float = 0.005,
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        check_in_range(alpha=(alpha, 0.0, 1e12))
        super().__init__(
            actor,
            critic,
            policy_delay=policy_delay,
            target_noise=target_noise,
            target_noise_clip=target_noise_clip,
            exploration=exploration,
            target_every=target_every,
            gamma=gamma,
            max_gradient_norm=max_gradient_norm,
            tau=tau,
            observation_space=observation_space,
            action_space=action_space,
            seed=seed,
            name=name,
            dtype=dtype,
        )
        self.alpha = alpha

    @classmethod
    @as_given
    def for_env(
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
        alpha: float = 2.5,
        policy_delay: int = 2,
        target_noise: float = 0.2,
        target_noise_clip: float = 0.5,
        exploration: GivenNoise | None = 0.1,
        target_every: int | None = None,
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
            alpha: float. α, weight of the Q-values relative to cloning; 0 is
                cloning alone. Defaults to `2.5`.
            policy_delay: int. Number of updates of the critics per update of
                the actor. Defaults to `2`.
            target_noise: float. σ, standard deviation of the noise added to
                target actions, in units of half an action's range. Defaults to
                `0.2`.
            target_noise_clip: float. c, bound to which the noise of target
                actions is clipped, in the same units. Defaults to `0.5`.
            exploration: float, str, dict, `ExplorationNoise` or None. Noise
                added to actions, in units of half their range; a number is the
                scale of `GaussianNoise`. Defaults to `0.1`.
            target_every: int or None. Number of updates per move of the target
                networks; None for `policy_delay`. Defaults to `None`.
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

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the optimizer that `compile("auto")` uses."""
        return keras.optimizers.Adam(3e-4, name="actor")

    def actor_losses(
        self, value: Tensor, action: Tensor, batch: Batch
    ) -> Tensor:
        """Returns each action's loss: the distance from the data's, and -λ Q_1.

        Args:
            value: `[B]` float32. Q-values of the first critic.
            action: `[B, A]` float32. The policy's, in the unit box.
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            `[B]` float32, to minimise.
        """
        return losses.behavior_regularized_value(
            value, action, batch["action"], self.alpha
        )
