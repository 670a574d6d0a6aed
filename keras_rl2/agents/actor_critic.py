"""Agents made of a policy network and a value network."""

from typing import Any

import keras
import numpy as np
from keras import ops

from keras_rl2.agents import network_checks
from keras_rl2.agents.agent import Agent
from keras_rl2.agents.updating import apply_gradients
from keras_rl2.distributions import Distribution
from keras_rl2.envs import as_vector_env
from keras_rl2.networks import network_for
from keras_rl2.policy_heads import policy_head
from keras_rl2.shapes import Tensor


class ActorCritic(Agent):
    """Base of agents with a policy network and a value network.

    Either two networks, or one with two outputs (policy, value) on a shared
    trunk. A network for a Box action space gives A means, and the agent keeps
    a log standard deviation that does not depend on the observation; or 2A
    numbers, means and log standard deviations.

    Args:
        actor: `keras.Model` from observations to the parameters of the
            policy; or to (parameters, value) where there is no critic.
        critic: `keras.Model` from observations to values `[B, 1]`, or None.
            Defaults to `None`.
        max_gradient_norm: float or None. Global norm that gradients are
            clipped to. Defaults to `0.5`.
        initial_log_std: float. Log standard deviation that a Box policy
            starts from. Defaults to `0.0`.
        **kwargs: `observation_space`, `action_space`, `seed`, `name`, `dtype`.
    """

    #: Whether a single network without a value output is refused.
    needs_value = True

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,
        *,
        max_gradient_norm: float | None = 0.5,
        initial_log_std: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        network_checks.check_in_range(
            initial_log_std=(initial_log_std, -20.0, 20.0)
        )
        if max_gradient_norm is not None:
            network_checks.check_in_range(
                max_gradient_norm=(max_gradient_norm, 1e-12, np.inf)
            )
        network_checks.check_is_model(actor=actor, critic=critic)
        self.actor = actor
        self.critic = critic
        self.max_gradient_norm = max_gradient_norm
        self.initial_log_std = initial_log_std
        self.log_std: Any = None
        self._bind_requested()

    @classmethod
    def for_env(
        cls,
        env: Any,
        *,
        hidden: tuple[int, ...] = (64, 64),
        activation: str = "tanh",
        normalize_observations: bool = False,
        initialization: str = "orthogonal",
        seed: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Makes a compiled agent with default networks for an environment.

        Args:
            env: An environment, vector environment or id string.
            hidden: Sequence of ints. Widths of the hidden layers. Defaults to
                `(64, 64)`.
            activation: str. Activation of the hidden layers. Defaults to
                `"tanh"`.
            normalize_observations: bool. Whether the networks begin with an
                `ObservationNormalization` layer. Defaults to `False`.
            initialization: str. `"orthogonal"`, with small weights in the
                actor's last layer; or `"fan_in"`, as layers of PyTorch start.
                Defaults to `"orthogonal"`.
            seed: int or None. Seeds weights and `act`. Defaults to `None`.
            **kwargs: Further arguments of the constructor.

        Returns:
            The agent. Images get a convolutional network, all else an MLP.

        Raises:
            ValueError: If a space of the environment is not supported, or the
                initialization is not known.
        """
        env = as_vector_env(env)
        head = policy_head(env.action_space)
        actor_seed, critic_seed = (
            np.random.SeedSequence(seed).generate_state(2).tolist()
        )
        options: dict[str, Any] = {
            "hidden": hidden,
            "activation": activation,
            "normalize_observations": normalize_observations,
            "initialization": initialization,
        }
        agent = cls(
            network_for(
                env.observation_space,
                head.parameter_sizes[0],
                output_gain=0.01 if initialization == "orthogonal" else 1.0,
                seed=actor_seed,
                name="actor",
                **options,
            ),
            network_for(
                env.observation_space,
                1,
                seed=critic_seed,
                name="critic",
                **options,
            ),
            observation_space=env.observation_space,
            action_space=env.action_space,
            seed=seed,
            **kwargs,
        )
        agent.compile()
        return agent

    def _check_and_build(self) -> None:
        """Checks the networks against the spaces and makes all variables."""
        sizes = network_checks.output_sizes(self)
        network_checks.check_outputs(self, sizes)
        head = self.policy_head
        if head.log_std_size and sizes[0] == head.log_std_size:
            self.log_std = self.add_weight(
                shape=(head.log_std_size,),
                initializer=keras.initializers.Constant(self.initial_log_std),
                name="log_std",
            )

    @property
    def acting_networks(self) -> list[keras.Model]:
        """Networks that the policy is made of."""
        return [self.actor]

    @property
    def acting_variables(self) -> list[Any]:
        """Variables that acting depends on."""
        log_std = [] if self.log_std is None else [self.log_std]
        return [*self.actor.variables, *log_std]

    def critic_variables(self) -> list[Any]:
        """Trainable variables that a `critic_optimizer` owns.

        Raises:
            ValueError: If actor and critic share any of them.
        """
        if self.critic is None:
            raise ValueError(
                "Expected a separate critic for a `critic_optimizer`. "
                "Received: one network with a shared trunk, whose variables "
                "both optimizers would own"
            )
        owned = {id(v) for v in self.actor.trainable_variables}
        shared = [v for v in self.critic.trainable_variables if id(v) in owned]
        if shared:
            raise ValueError(
                "Expected actor and critic without common variables for two "
                "optimizers. Received: both own "
                f"{[v.path for v in shared]}"
            )
        return list(self.critic.trainable_variables)

    # Policy and value.

    def call(self, observation: Tensor, training: bool = False) -> Tensor:
        """Returns the parameters of the policy `[B, P]`."""
        outputs = self.actor(self.encode(observation), training=training)
        if self.critic is not None:
            return outputs
        return self.split_outputs(outputs)[0]

    def split_outputs(self, outputs: Any) -> tuple[Tensor, Tensor]:
        """Parts what one network with two outputs gave.

        Args:
            outputs: (`[B, P]`, `[B, 1]`). What the network returned; or
                `[B, P]` of an agent that does without values.

        Returns:
            Parameters `[B, P]` and values `[B]` float32.
        """
        if isinstance(outputs, (list, tuple)):
            return outputs[0], one_value_each(outputs[1])
        return outputs, ops.zeros_like(outputs[:, 0], "float32")

    def policy(self, parameters: Tensor) -> Distribution:
        """Returns the action distribution that parameters stand for."""
        log_std = self.log_std
        if log_std is not None:
            log_std = ops.convert_to_tensor(log_std)
        distribution: Distribution = self.policy_head(parameters, log_std)
        return distribution

    def policy_and_value(
        self, observation: Tensor, training: bool = False
    ) -> tuple[Distribution, Tensor]:
        """Runs the networks once.

        Args:
            observation: `[B, ...]`. Raw observations.
            training: bool. Passed on to the networks. Defaults to `False`.

        Returns:
            The policy, and values `[B]` float32.
        """
        encoded = self.encode(observation)
        outputs = self.actor(encoded, training=training)
        if self.critic is None:
            parameters, value = self.split_outputs(outputs)
        else:
            parameters = outputs
            value = one_value_each(self.critic(encoded, training=training))
        return self.policy(parameters), value

    def value(self, observation: Tensor) -> Tensor:
        """Returns values `[B]` float32 of raw observations `[B, ...]`."""
        encoded = self.encode(observation)
        if self.critic is None:
            return self.split_outputs(self.actor(encoded, training=False))[1]
        return one_value_each(self.critic(encoded, training=False))

    def sample_action(self, observation: Tensor, noise: Tensor) -> Tensor:
        """Draws actions of the policy from standard noise."""
        return self.policy(self(observation)).sample(noise)

    def greedy_action(self, observation: Tensor) -> Tensor:
        """Returns the policy's most probable actions."""
        return self.policy(self(observation)).mode()

    # Updating.

    def minimize(self, loss: Tensor, tape: Any) -> Tensor:
        """Applies the gradient of a loss to all trainable variables.

        Args:
            loss: scalar. As the optimizer scaled it.
            tape: `tf.GradientTape` that recorded it.

        Returns:
            scalar: global norm of the gradient before it was clipped.
        """
        variables = self.trainable_variables
        gradients = tape.gradient(loss, variables)
        return apply_gradients(
            self.optimizer, gradients, variables, self.max_gradient_norm
        )

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns Adam with the step and epsilon that PPO is run with."""
        return keras.optimizers.Adam(3e-4, epsilon=1e-5)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        critic = self.critic
        return {
            **super().get_config(),
            "actor": keras.saving.serialize_keras_object(self.actor),
            "critic": (
                None
                if critic is None
                else keras.saving.serialize_keras_object(critic)
            ),
            "max_gradient_norm": self.max_gradient_norm,
            "initial_log_std": self.initial_log_std,
        }


def one_value_each(value: Tensor) -> Tensor:
    """Turns a critic's output into one value for each sample.

    Args:
        value: `[B, 1]` or `[B]`. The output.

    Returns:
        `[B]` float32.
    """
    if len(value.shape) == 2:
        value = value[:, 0]
    return ops.cast(value, "float32")
