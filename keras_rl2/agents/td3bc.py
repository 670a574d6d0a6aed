"""TD3 with behaviour cloning."""

from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import Self

import keras

from keras_rl2 import losses
from keras_rl2.agents.agent import as_given
from keras_rl2.agents.td3 import TD3
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.exploration.get import GivenNoise
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch


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
        policy_delay: int. Updates from one of the actor to the next. Defaults
            to `2`.
        target_noise: float. σ, standard deviation of the noise of target
            actions, in half the range of an action. Defaults to `0.2`.
        target_noise_clip: float. c, what that noise is clipped to. Defaults to
            `0.5`.
        exploration: float, str, dict, `ExplorationNoise` or None. Noise of
            actions in half their range; a number is the scale of
            `GaussianNoise`. Defaults to `0.1`.
        target_every: int or None. Updates from one move of target networks to
            the next; None for `policy_delay`. Defaults to `None`.
        gamma: float. Discount factor. Defaults to `0.99`.
        max_gradient_norm: float or None. Global norm that gradients are
            clipped to, the actor's and the critics' each for itself. Defaults
            to `None`.
        tau: float. Share of its network that a target network takes over when
            it moves, over 0 and at most 1; 1 copies it. Defaults to `0.005`.
        observation_space: `gymnasium.Space` or its config. What is observed;
            None to learn it from the first environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. What can be done; None
            to learn it from the first environment. Defaults to `None`.
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
        env: Any,
        *,
        hidden: Sequence[int] | None = None,
        activation: str | None = None,
        normalize_observations: bool = False,
        layer_normalization: bool | None = None,
        initialization: Literal["orthogonal", "fan_in"] | None = None,
        memory: keras.layers.Layer | None = None,
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
                the algorithm's own, or those of the convolutional network.
                Defaults to `None`.
            activation: str or None. Activation of the hidden layers; None for
                the algorithm's own. Defaults to `None`.
            normalize_observations: bool. Whether the networks begin with an
                `ObservationNormalization` layer. Defaults to `False`.
            layer_normalization: bool or None. Whether a
                `keras.layers.LayerNormalization` stands before the activation
                of each hidden layer; None for the algorithm's own. Defaults to
                `None`.
            initialization: str or None. `"orthogonal"`, with small weights in
                the last layer of an actor; `"fan_in"`, as layers of PyTorch
                start; None for the algorithm's own. Defaults to `None`.
            memory: RNN cell of Keras or None, `keras.layers.LSTMCell(128)`
                say. What the policy remembers with, of what is seen; the
                hidden layers come after it, for each output its own. See
                `keras_rl2.networks.MemoryNetwork`. Defaults to `None`.
            alpha: float. α, what values count beside cloning; 0 is cloning
                alone. Defaults to `2.5`.
            policy_delay: int. Updates from one of the actor to the next.
                Defaults to `2`.
            target_noise: float. σ, standard deviation of the noise of target
                actions, in half the range of an action. Defaults to `0.2`.
            target_noise_clip: float. c, what that noise is clipped to.
                Defaults to `0.5`.
            exploration: float, str, dict, `ExplorationNoise` or None. Noise of
                actions in half their range; a number is the scale of
                `GaussianNoise`. Defaults to `0.1`.
            target_every: int or None. Updates from one move of target networks
                to the next; None for `policy_delay`. Defaults to `None`.
            gamma: float. Discount factor. Defaults to `0.99`.
            max_gradient_norm: float or None. Global norm that gradients are
                clipped to, the actor's and the critics' each for itself.
                Defaults to `None`.
            tau: float. Share of its network that a target network takes over
                when it moves, over 0 and at most 1; 1 copies it. Defaults to
                `0.005`.
            seed: int or None. Seeds weights, updates and `act`. Defaults to
                `None`.
            name: str or None. Name of the model. Defaults to `None`.
            dtype: str or None. Keras dtype policy of the agent and its
                networks, `"mixed_float16"` say; None for the global one.
                Defaults to `None`.

        Returns:
            The agent. Images get a convolutional network, all else an MLP.

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
