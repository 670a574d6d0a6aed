"""Soft actor-critic."""

import math
from typing import Any

import gymnasium
import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents import network_checks
from keras_rl2.agents.action_noise import ActionNoise
from keras_rl2.agents.twin_critic_agent import TwinCriticAgent
from keras_rl2.agents.updating import apply_gradients
from keras_rl2.networks import network_for
from keras_rl2.policy_heads import policy_head
from keras_rl2.shapes import Tensor


@keras.saving.register_keras_serializable(package="keras_rl2")
class SAC(TwinCriticAgent):
    """Soft actor-critic, for Box and Discrete actions.

    Maximises the return plus the entropy of the policy times a temperature α,
    which is learned so that the entropy stays near a target. With the soft
    value of a state, by the smaller of two critics,

        V(s) = E_a~π [min_i Q_i(s, a) - α log π(a|s)]

    the losses of critics, policy and temperature are

        L_Q = Σ_i ½ mean((r + discount V'(s') - Q_i(s, a))²)
        L_π = -mean(V(s)),   L_α = log α mean(H(π) - H_target)

    where V' uses the target critics. A squashed Gaussian is sampled once for
    E and its entropy; with Discrete actions both are exact sums.
    All three gradients are those of the weights before the update.

    Args:
        actor: `keras.Model` from observations to `[B, 2A]`, means and log
            standard deviations of a Box policy before tanh; or `[B, n]`
            logits.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`; for Discrete actions, from
            observations to `[B, n]`. Or a pair of such models; a single one
            gets a twin like it, with weights of its own.
        temperature: float above 0. α at first. Defaults to `1.0`.
        learn_temperature: bool. Whether α follows the target entropy; if not
            it stays what it is. Defaults to `True`.
        target_entropy: float or None. In nats; None for -A, as published, or
            0.89 log n for Discrete actions. Defaults to `None`.
        exploration: float, str, dict, `ExplorationNoise` or None. Noise that
            is added to the actions of a Box policy, in half their range, for
            goals that its own chance does not find; see `TD3`. Defaults to
            `None`.
        **kwargs: Arguments of `OffPolicyAgent`: `gamma`, `max_gradient_norm`,
            `observation_space`, `action_space`, `seed`, `name`, `dtype`.

    Raises:
        ValueError: If a number is out of range or a network does not fit.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("Pendulum-v1", batch_size=32, warm_up=64,
    ...                           updates_per_round=4, rounds_per_epoch=1,
    ...                           seed=0)
    >>> agent = rl.SAC.for_env("Pendulum-v1", hidden=(32,), seed=0)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:4]
    ['actor_loss', 'critic_loss', 'entropy', 'env_steps']

    Reference:
        - [Haarnoja et al., 2018](https://arxiv.org/abs/1812.05905).
        - [Christodoulou, 2019](https://arxiv.org/abs/1910.07207), Discrete.
    """

    statistics_names = (
        "loss",
        "actor_loss",
        "critic_loss",
        "q_value",
        "entropy",
        "temperature",
        "gradient_norm",
    )

    def __init__(
        self,
        actor: keras.Model,
        critic: Any,
        *,
        temperature: float = 1.0,
        learn_temperature: bool = True,
        target_entropy: float | None = None,
        exploration: Any = None,
        **kwargs: Any,
    ) -> None:
        network_checks.check_in_range(temperature=(temperature, 1e-12, 1e12))
        if target_entropy is not None:
            network_checks.check_in_range(
                target_entropy=(target_entropy, -1e12, 1e12)
            )
        noise = ActionNoise(exploration)
        super().__init__(actor, critic, **kwargs)
        self._noise = noise
        self.temperature = temperature
        self.learn_temperature = learn_temperature
        self.target_entropy = target_entropy
        self.log_temperature = self.add_weight(
            shape=(),
            initializer=keras.initializers.Constant(math.log(temperature)),
            trainable=learn_temperature,
            name="log_temperature",
        )
        self._bind_requested()

    @classmethod
    def _head_for(cls, action_space: Any) -> Any:
        """Returns a squashed Gaussian's head, or that of Discrete actions."""
        network_checks.check_action_kind(
            cls, action_space, (gymnasium.spaces.Box, gymnasium.spaces.Discrete)
        )
        return policy_head(action_space, squash=True)

    @classmethod
    def _actor_size(cls, head: Any) -> int:
        """Returns the width of the default actor's output."""
        return int(head.parameter_sizes[-1])

    @classmethod
    def _critic_for(cls, space: Any, head: Any, **options: Any) -> keras.Model:
        """Returns a default critic."""
        if head.log_std_size:
            return super()._critic_for(space, head, **options)
        return network_for(space, head.n, **options)

    def _critic_units(self) -> int | None:
        """Returns the width of critics that take no action, else None."""
        return self.policy_head.n if self.is_discrete else None

    @property
    def is_discrete(self) -> bool:
        """Whether actions are choices rather than numbers."""
        return not self.policy_head.log_std_size

    @property
    def _target_entropy(self) -> float:
        """Entropy that the temperature aims at, in nats."""
        if self.target_entropy is not None:
            return self.target_entropy
        if self.is_discrete:
            return 0.89 * math.log(self.policy_head.n)
        return -float(np.prod(self.policy_head.action_shape))

    def _check_and_build(self) -> None:
        """Checks networks and noise against the spaces; makes variables."""
        if self.exploration is not None and self.is_discrete:
            raise ValueError(
                "Expected `exploration=None` for Discrete actions, which "
                f"nothing can be added to. Received: {self.exploration!r}"
            )
        super()._check_and_build()

    # Acting.

    @property
    def exploration(self) -> Any:
        """The `ExplorationNoise` of actions, or None."""
        return self._noise.exploration

    @property
    def noise_shape(self) -> tuple[int, ...]:
        """Shape of the noise of one action: the policy's, and that added."""
        shape: tuple[int, ...] = super().noise_shape
        return shape if self.exploration is None else (2 * shape[0],)

    def draw_noise(
        self, generator: np.random.Generator, shape: Any, state: Any = None
    ) -> tuple[np.ndarray, Any]:
        """Draws the policy's noise, and beside it the one that is added."""
        noise, _ = super().draw_noise(generator, shape)
        if self.exploration is None:
            return noise, state
        added, state = self._noise.draw(
            generator, shape, noise.shape[-1], self.env_steps, state
        )
        return np.concatenate([noise, added], axis=-1), state

    def exploration_logs(self) -> dict[str, float]:
        """Returns the scale of the added noise, where that changes."""
        return self._noise.logs(self.env_steps)

    def sample_action(self, observation: Tensor, noise: Tensor) -> Tensor:
        """Draws actions of the policy from noise of `draw_noise`."""
        policy = self.policy_head(self(observation))
        if self.exploration is None:
            return policy.sample(noise)
        noise, added = ops.split(noise, 2, axis=-1)
        return ops.clip(policy.sample(noise) + added, -1.0, 1.0)

    def greedy_action(self, observation: Tensor) -> Tensor:
        """Returns the policy's actions without chance."""
        return self.policy_head(self(observation)).mode()

    # Learning.

    def soft_value(
        self, critics: list[keras.Model], encoded: Tensor, stream: int
    ) -> tuple[Tensor, Tensor]:
        """Returns the soft value of states and the policy's entropy there.

        Args:
            critics: list of `keras.Model`. The smaller value counts.
            encoded: `[B, ...]`. Observations as networks take them.
            stream: int. Which of the update's draws.

        Returns:
            `[B]` and `[B]` float32.
        """
        policy = self.policy_head(self.actor(encoded, training=True))
        temperature = ops.exp(self.log_temperature)
        if self.is_discrete:
            values = self._all_values(critics, encoded)
            value = losses.expected_soft_value(
                policy.log_probs, values, temperature
            )
            return value, policy.entropy()
        # The last batch of a dataset of one's own may be a smaller one.
        shape = ops.shape(encoded)[:1] + self.policy_head.noise_shape
        noise = self.draw_normal(shape, stream)
        action, log_prob = policy.sample_and_log_prob(noise)
        values = self.action_values(critics, encoded, action)
        return losses.soft_value(log_prob, values, temperature), -log_prob

    def _all_values(
        self, critics: list[keras.Model], encoded: Tensor
    ) -> list[Tensor]:
        """Returns what each critic thinks of all actions, `[B, n]` each."""
        return [ops.cast(critic(encoded), "float32") for critic in critics]

    def _values_of(self, encoded: Tensor, action: Tensor) -> list[Tensor]:
        """Returns what each critic thinks of the actions taken."""
        if not self.is_discrete:
            return self.action_values(self.critics, encoded, action)
        index = ops.cast(action, "int32")[:, None]
        return [
            ops.take_along_axis(values, index, axis=1)[:, 0]
            for values in self._all_values(self.critics, encoded)
        ]

    def update(
        self, batch: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], Tensor]:
        """Makes one update of critics, policy and temperature."""
        scale = self.optimizer.scale_loss
        encoded = self.encode(batch["observation"])
        following = self.encode(batch["next_observation"])
        next_value, _ = self.soft_value(self.target_critics, following, 0)
        target = batch["reward"] + batch["discount"] * next_value
        critic_variables = self.critic_variables()
        with tf.GradientTape() as tape:
            values = self._values_of(encoded, batch["action"])
            critic_loss, td_error = self.critic_loss(
                values, target, batch["weight"]
            )
            scaled = scale(critic_loss)
        gradients = self.gradients(scaled, tape, critic_variables)
        actor_variables = self.actor.trainable_variables
        with tf.GradientTape() as tape:
            value, entropy = self.soft_value(self.critics, encoded, 1)
            actor_loss = -ops.mean(batch["weight"] * value)
            scaled = scale(actor_loss)
        gradients += self.gradients(scaled, tape, actor_variables)
        variables = [*critic_variables, *actor_variables]
        if self.learn_temperature:
            with tf.GradientTape() as tape:
                scaled = scale(self._temperature_loss(entropy))
            variables.append(self.log_temperature)
            gradients += self.gradients(scaled, tape, variables[-1:])
        temperature = ops.exp(self.log_temperature)
        norm = apply_gradients(
            self.optimizer, gradients, variables, self.max_gradient_norm
        )
        return {
            "loss": critic_loss + actor_loss,
            "actor_loss": actor_loss,
            "critic_loss": critic_loss,
            "q_value": ops.mean(values[0]),
            "entropy": ops.mean(entropy),
            "temperature": temperature,
            "gradient_norm": norm,
        }, td_error

    def _temperature_loss(self, entropy: Tensor) -> Tensor:
        """Returns the scalar loss of the temperature."""
        return ops.mean(
            losses.temperature_loss(
                ops.convert_to_tensor(self.log_temperature),
                entropy,
                self._target_entropy,
            )
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {
            **super().get_config(),
            "temperature": self.temperature,
            "learn_temperature": self.learn_temperature,
            "target_entropy": self.target_entropy,
            "exploration": self._noise.serialized(),
        }
