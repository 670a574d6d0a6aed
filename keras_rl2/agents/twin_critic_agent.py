"""Agents made of a policy network and networks that value actions."""

import abc
from collections.abc import Sequence
from typing import Any
from typing import Self

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2.agents import network_checks
from keras_rl2.agents.actor_critic import one_value_each
from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.envs import as_vector_env
from keras_rl2.networks import copy_of
from keras_rl2.networks import critic_for
from keras_rl2.networks import network_for
from keras_rl2.networks import sibling
from keras_rl2.shapes import Tensor


class TwinCriticAgent(OffPolicyAgent):
    """Base of actor-critics that learn from replay.

    Policies for a Box act within -1 ... 1 in each dimension: that is what the
    replay buffer holds and what critics see. The bounds of the environment
    are scaled to once, on the way there, in exported policies too.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy.
        critic: `keras.Model` from a list of observations and actions to
            values `[B, 1]`; or a sequence of such models, one for each critic
            that the algorithm has. The others are made like a single one,
            with weights of their own.
        **kwargs: Arguments of `OffPolicyAgent`: `gamma`, `max_gradient_norm`,
            `observation_space`, `action_space`, `seed`, `name`, `dtype`.
    """

    #: How many networks value actions.
    number_of_critics = 2

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | Sequence[keras.Model],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        critics = _as_list(critic)
        for each in critics:
            network_checks.check_is_model(actor=actor, critic=each)
        if len(critics) == 1:
            critics += [
                sibling(critics[0], index)
                for index in range(1, self.number_of_critics)
            ]
        if len(critics) != self.number_of_critics:
            raise ValueError(
                f"Expected one `critic` or {self.number_of_critics} of them. "
                f"Received: {len(critics)}"
            )
        self.actor = actor
        self.critics = critics
        self.target_critics: list[keras.Model] = []

    @classmethod
    def for_env(
        cls,
        env: Any,
        *,
        hidden: tuple[int, ...] = (256, 256),
        activation: str = "relu",
        normalize_observations: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Makes a compiled agent with default networks for an environment.

        Args:
            env: An environment, vector environment or id string.
            hidden: Sequence of ints. Widths of the hidden layers. Defaults to
                `(256, 256)`.
            activation: str. Activation of the hidden layers. Defaults to
                `"relu"`.
            normalize_observations: bool. Whether the networks begin with an
                `ObservationNormalization` layer. Defaults to `False`.
            seed: int or None. Seeds weights, updates and `act`. Defaults to
                `None`.
            **kwargs: Further arguments of the constructor.

        Returns:
            The agent. Images get a convolutional network, all else an MLP.

        Raises:
            ValueError: If a space of the environment is not supported.
        """
        env = as_vector_env(env)
        head = cls._head_for(env.action_space)
        actor_seed, *critic_seeds = (
            np.random.SeedSequence(seed)
            .generate_state(1 + cls.number_of_critics)
            .tolist()
        )
        options: dict[str, Any] = {
            "hidden": hidden,
            "activation": activation,
            "normalize_observations": normalize_observations,
            "initialization": "fan_in",
        }
        agent = cls(
            network_for(
                env.observation_space,
                cls._actor_size(head),
                seed=actor_seed,
                name="actor",
                **options,
            ),
            [
                cls._critic_for(
                    env.observation_space,
                    head,
                    seed=critic_seed,
                    name=f"critic_{index}",
                    **options,
                )
                for index, critic_seed in enumerate(critic_seeds)
            ],
            observation_space=env.observation_space,
            action_space=env.action_space,
            seed=seed,
            **kwargs,
        )
        agent.compile()
        return agent

    @classmethod
    def _critic_for(cls, space: Any, head: Any, **options: Any) -> keras.Model:
        """Returns a default critic."""
        return critic_for(space, head.noise_shape[0], **options)

    @classmethod
    @abc.abstractmethod
    def _head_for(cls, action_space: Any) -> Any:
        """Returns what stands between the network and the action space."""

    @classmethod
    @abc.abstractmethod
    def _actor_size(cls, head: Any) -> int:
        """Returns the width of the default actor's output."""

    def _make_policy_head(self, action_space: Any) -> Any:
        """Returns what stands between the network and the action space."""
        return self._head_for(action_space)

    def _check_and_build(self) -> None:
        """Checks the networks against the spaces and makes all variables."""
        network_checks.check_policy(
            self, self.actor, self._actor_size(self.policy_head)
        )
        for critic in self.critics:
            network_checks.check_critic(self, critic, self._critic_units())
        self._check_apart()
        self.target_critics = [
            copy_of(critic, f"target_{critic.name}") for critic in self.critics
        ]

    def _check_apart(self) -> None:
        """Refuses networks that share variables, which each has a loss for."""
        owners: dict[int, str] = {}
        for network in (self.actor, *self.critics):
            for variable in network.trainable_variables:
                if id(variable) in owners:
                    raise ValueError(
                        "Expected actor and critics without common variables. "
                        f"Received: {owners[id(variable)]!r} and "
                        f"{network.name!r} both own {variable.path!r}"
                    )
                owners[id(variable)] = network.name

    def _critic_units(self) -> int | None:
        """Returns the width of critics that take no action, else None."""
        return None

    # Networks.

    @property
    def acting_networks(self) -> list[keras.Model]:
        """Networks that the policy is made of."""
        return [self.actor]

    @property
    def acting_variables(self) -> list[Any]:
        """Variables that acting depends on."""
        return list(self.actor.variables)

    @property
    def target_pairs(self) -> list[tuple[keras.Model, keras.Model]]:
        """Target networks, each with the network that it follows."""
        return list(zip(self.target_critics, self.critics, strict=True))

    def critic_variables(self) -> list[Any]:
        """Trainable variables that a `critic_optimizer` owns."""
        return [v for c in self.critics for v in c.trainable_variables]

    def call(self, observation: Tensor, training: bool = False) -> Tensor:
        """Returns the parameters of the policy `[B, P]`."""
        return self.actor(self.encode(observation), training=training)

    def action_values(
        self, critics: list[keras.Model], encoded: Tensor, action: Tensor
    ) -> list[Tensor]:
        """Returns what each critic thinks of actions, `[B]` float32 each."""
        return [one_value_each(critic([encoded, action])) for critic in critics]

    # Learning.

    def critic_loss(
        self, values: list[Tensor], target: Tensor, weight: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compares what critics think with their common target.

        Args:
            values: list of `[B]`. Of each critic.
            target: `[B]`. A constant.
            weight: `[B]`. What each transition counts.

        Returns:
            scalar: half the mean squared error, summed over critics; and the
            mean TD error of the critics `[B]`.
        """
        errors = [ops.stop_gradient(target) - value for value in values]
        loss = sum(ops.mean(weight * 0.5 * ops.square(e)) for e in errors)
        td_error = ops.stop_gradient(sum(errors) / len(errors))
        return loss, td_error

    def gradients(self, loss: Tensor, tape: Any, variables: list[Any]) -> Any:
        """Returns the gradient of a loss, scaled as the optimizer wants it."""
        gradients: list[Any] = tape.gradient(
            loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        return gradients

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {
            **super().get_config(),
            "actor": keras.saving.serialize_keras_object(self.actor),
            "critic": [
                keras.saving.serialize_keras_object(critic)
                for critic in self.critics
            ],
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> Self:
        """Makes an agent from `get_config`."""
        critic = [
            keras.saving.deserialize_keras_object(
                each, custom_objects=custom_objects
            )
            if isinstance(each, dict)
            else each
            for each in _as_list(config["critic"])
        ]
        return super().from_config(
            {**config, "critic": critic}, custom_objects=custom_objects
        )


def _as_list(critic: Any) -> list[Any]:
    """Returns one critic or several as a list."""
    return list(critic) if isinstance(critic, (list, tuple)) else [critic]
