"""Implicit Q-learning."""

import functools
from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import Self
from typing import cast

import gymnasium
import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.agent import as_given
from keras_rl2.agents.stochastic_actor import StochasticActor
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import DiagonalGaussian
from keras_rl2.distributions import Distribution
from keras_rl2.networks import checks as network_checks
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.networks.checks import check_value_ending
from keras_rl2.networks.checks import one_value_each
from keras_rl2.networks.inputs import inputs_for
from keras_rl2.networks.inputs import run_network
from keras_rl2.policy_heads import PolicyHead
from keras_rl2.policy_heads import policy_head
from keras_rl2.policy_heads.discrete_head import DiscreteHead
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.updates import critics
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class IQL(StochasticActor):
    """Implicit Q-learning, for Box and Discrete actions.

    Learns from a fixed dataset without ever asking what actions are worth that
    are not in it. The value of a state is an expectile τ of the values of the
    actions that were taken there, near the best of them for a τ near 1; the
    policy imitates actions by their advantage:

        L_V = mean(|τ - 1(u < 0)| u²),   u = min_i Q'_i(s, a) - V(s)
        L_Q = Σ_i ½ mean((r + discount V(s') - Q_i(s, a))²)
        L_π = -mean(min(exp(β u), w) log π(a|s))

    where Q' are target critics, and weights of the policy's loss are
    constants. All gradients are those of the weights before the update. It goes
    on online from a `ReplayDataset`, exploring by its policy's own chance.
    `for_env(..., normalize_observations=True)` is recommended where numbers of
    an observation differ in size: far fewer updates are needed.

    A Box policy is a Gaussian around the tanh of the actor's output, in the
    unit box, with a standard deviation that does not depend on the
    observation; samples are clipped to the box. It is not squashed as that of
    `SAC`: of actions on the bounds, which data has many of, a squashed
    Gaussian can give no sensible likelihood.

    Args:
        actor: `keras.Model` from observations to `[B, A]`, before tanh; or
            `[B, n]` logits.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`; for Discrete actions, from
            observations to `[B, n]`. Or a pair of such models; a single one
            gets a twin like it, with weights of its own.
        value_network: `keras.Model` from observations to values `[B, 1]`.
        expectile: float between 0 and 1. τ; 0.5 is the mean. Defaults to
            `0.7`.
        inverse_temperature: float. β; 0 is behaviour cloning. Defaults to
            `3.0`.
        max_weight: float. w, the most that one action counts. Defaults to
            `100.0`.
        initial_log_std: float. Log standard deviation that a Box policy starts
            from; it stays within -5 ... 2. Defaults to `0.0`.
        gamma: float. Discount factor. Defaults to `0.99`.
        max_gradient_norm: float or None. Global norm that gradients are
            clipped to. Defaults to `None`.
        tau: float. Share of its network that a target network takes over when
            it moves, over 0 and at most 1; 1 copies it. Defaults to `0.005`.
        target_every: int. Updates from one move of target networks to the
            next. Defaults to `1`.
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
    >>> agent = rl.IQL.for_env("Pendulum-v1", hidden=(32,), seed=0)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:3]
    ['actor_loss', 'advantage_weight', 'critic_loss']

    Reference:
        - [Kostrikov et al., 2022](https://arxiv.org/abs/2110.06169).
    """

    action_kinds = (gymnasium.spaces.Box, gymnasium.spaces.Discrete)
    #: How many networks value actions.
    number_of_critics = 2
    statistics_names = (
        "loss",
        "actor_loss",
        "critic_loss",
        "value_loss",
        "q_value",
        "advantage_weight",
        "gradient_norm",
    )

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        value_network: keras.Model,
        *,
        expectile: float = 0.7,
        inverse_temperature: float = 3.0,
        max_weight: float = 100.0,
        initial_log_std: float = 0.0,
        gamma: float = 0.99,
        max_gradient_norm: float | None = None,
        tau: float = 0.005,
        target_every: int = 1,
        observation_space: GivenSpace | None = None,
        action_space: GivenSpace | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        check_in_range(
            # At either end all values are one: the lowest or the highest.
            expectile=(expectile, 1e-6, 1.0 - 1e-6),
            inverse_temperature=(inverse_temperature, 0.0, 1e12),
            max_weight=(max_weight, 1e-12, 1e12),
        )
        network_checks.check_is_network("value_network", value_network)
        given = critics.as_critics(critic, self.number_of_critics)
        super().__init__(
            actor,
            initial_log_std=initial_log_std,
            gamma=gamma,
            max_gradient_norm=max_gradient_norm,
            tau=tau,
            target_every=target_every,
            observation_space=observation_space,
            action_space=action_space,
            seed=seed,
            name=name,
            dtype=dtype,
        )
        # Before the critics, of which one may be made later: variables are to
        # be in the same order where both are given, as when it is loaded.
        self.value_network = value_network
        self.critics = given
        self.target_critics: list[keras.Model] = []
        self.expectile = expectile
        self.inverse_temperature = inverse_temperature
        self.max_weight = max_weight
        self._bind_requested()

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
        expectile: float = 0.7,
        inverse_temperature: float = 3.0,
        max_weight: float = 100.0,
        initial_log_std: float = 0.0,
        gamma: float = 0.99,
        max_gradient_norm: float | None = None,
        tau: float = 0.005,
        target_every: int = 1,
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
            expectile: float between 0 and 1. τ; 0.5 is the mean. Defaults to
                `0.7`.
            inverse_temperature: float. β; 0 is behaviour cloning. Defaults to
                `3.0`.
            max_weight: float. w, the most that one action counts. Defaults to
                `100.0`.
            initial_log_std: float. Log standard deviation that a Box policy
                starts from; it stays within -5 ... 2. Defaults to `0.0`.
            gamma: float. Discount factor. Defaults to `0.99`.
            max_gradient_norm: float or None. Global norm that gradients are
                clipped to. Defaults to `None`.
            tau: float. Share of its network that a target network takes over
                when it moves, over 0 and at most 1; 1 copies it. Defaults to
                `0.005`.
            target_every: int. Updates from one move of target networks to the
                next. Defaults to `1`.
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

    @classmethod
    def make_policy_head(cls, action_space: gymnasium.Space[Any]) -> PolicyHead:
        """Returns what stretches the unit box, or that of Discrete actions."""
        network_checks.check_action_kind(cls, action_space, cls.action_kinds)
        return policy_head(action_space, squash=True)

    @classmethod
    def default_networks(
        cls, build: NetworkBuilder, **settings: Any
    ) -> tuple[keras.Model, list[keras.Model], keras.Model]:
        """Makes an actor, two critics and a value network."""
        number = cls.number_of_critics
        actor, valuing = critics.default_networks(
            build,
            build.head.parameter_sizes[0],
            number,
            discrete=not build.head.log_std_size,
        )
        # Beside those of the others, of which there is one more than critics.
        seed = build.seeds(number + 2)[-1]
        return actor, valuing, build.network("value_network", 1, seed)

    def given_networks(self) -> dict[str, Any]:
        """Returns the networks by the constructor's argument for them."""
        return {
            "actor": self.actor,
            "critic": self.critics,
            "value_network": self.value_network,
        }

    def _check_and_build(self) -> None:
        """Checks the networks against the spaces and makes all variables."""
        head, valuing = self.policy_head, self.value_network
        self._build_actor(head.parameter_sizes[0], squash=True)
        network_checks.check_critic(
            self.task, valuing, None, 1, "value_network"
        )
        check_value_ending(
            valuing, inputs_for(valuing, self.encode.network_input)
        )
        self.critics = critics.complete(
            self.task,
            self.actor,
            self.critics,
            self.number_of_critics,
            cast(DiscreteHead, head).n if self.is_discrete else None,
        )
        critics.check_apart([self.actor, *self.critics, valuing])
        self.target_critics = critics.targets_of(self.critics)

    @property
    def is_discrete(self) -> bool:
        """Whether actions are choices rather than numbers."""
        return not self.policy_head.log_std_size

    # Networks.

    @property
    def target_pairs(self) -> list[tuple[keras.Model, keras.Model]]:
        """Target networks, each with the network that it follows."""
        return list(zip(self.target_critics, self.critics, strict=True))

    def critic_variables(self) -> list[keras.Variable]:
        """Trainable variables that a `critic_optimizer` owns."""
        networks = [*self.critics, self.value_network]
        return [v for each in networks for v in each.trainable_variables]

    def values_of_taken(
        self, observation: Any, action: Tensor, training: bool = False
    ) -> list[Tensor]:
        """Returns what each critic thinks of actions, `[B]` float32."""
        return critics.values_of_taken(
            self.critics,
            self.encode(observation),
            action,
            self.is_discrete,
            training,
        )

    def value(self, observation: Any) -> Tensor:
        """Returns values `[B]` float32 of raw observations `[B, ...]`."""
        return self._value(observation)

    def _value(self, observation: Any, training: bool = False) -> Tensor:
        """Returns values of states, perhaps of a pass that trains."""
        encoded = self.encode(observation)
        return one_value_each(
            run_network(self.value_network, encoded, training)
        )

    def policy_of(self, parameters: Tensor, observation: Any) -> Distribution:
        """Returns the action distribution that parameters stand for.

        Args:
            parameters: `[B, P]`. What the network gave.
            observation: `[B, ...]`. Raw observations, with a mask perhaps.

        Returns:
            `Distribution` of `[B]` actions, of a Box in the unit box.
        """
        log_std = self._present_log_std()
        if log_std is None:
            return super().policy_of(parameters, observation)
        mean = ops.tanh(ops.cast(parameters, "float32"))
        return DiagonalGaussian(mean, log_std)

    # Acting.

    def sample_action(self, observation: Any, noise: Tensor) -> Tensor:
        """Draws actions of the policy, those of a Box clipped to their box."""
        action = super().sample_action(observation, noise)
        return action if self.is_discrete else ops.clip(action, -1.0, 1.0)

    # Learning.

    def objectives(self) -> dict[str, Objective]:
        """Returns the losses of the critics, of values and of the policy."""
        return {
            "critic": Objective(self.critic_terms, self.critics),
            "value": Objective(self.value_terms, [self.value_network]),
            "actor": Objective(
                self.actor_terms, [self.actor], self._policy_variables
            ),
        }

    def critic_terms(self, batch: Batch) -> Terms:
        """Computes what a minibatch costs the critics.

        Args:
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            dict: `loss`, a scalar, which is minimised; `td_error` `[B]`; other
            scalars for the logs.
        """
        values = self.values_of_taken(
            batch["observation"], batch["action"], training=True
        )
        following = self.value(batch["next_observation"])
        target = batch["reward"] + batch["discount"] * following
        return critics.td_terms(values, target, batch["weight"])

    def value_terms(self, batch: Batch) -> Terms:
        """Computes what a minibatch costs the value network.

        Args:
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            dict: `loss`, a scalar, which is minimised.
        """
        each = losses.expectile(
            self._advantage(batch, training=True), self.expectile
        )
        return {"loss": ops.mean(batch["weight"] * each)}

    def actor_terms(self, batch: Batch) -> Terms:
        """Computes what a minibatch costs the policy.

        Args:
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            dict: `loss`, a scalar, which is minimised; other scalars for the
            logs.
        """
        weight = losses.advantage_weight(
            self._advantage(batch), self.inverse_temperature, self.max_weight
        )
        log_prob = self.trained_policy(batch).log_prob(batch["action"])
        each = losses.policy_gradient(log_prob, weight)
        return {
            "loss": ops.mean(batch["weight"] * each),
            "advantage_weight": ops.mean(weight),
        }

    def _advantage(self, batch: Batch, training: bool = False) -> Tensor:
        """Returns how much better than V(s) the actions taken are, `[B]`."""
        values = critics.values_of_taken(
            self.target_critics,
            self.encode(batch["observation"]),
            batch["action"],
            self.is_discrete,
        )
        smallest = ops.stop_gradient(functools.reduce(ops.minimum, values))
        return smallest - self._value(batch["observation"], training)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {
            **super().get_config(),
            "expectile": self.expectile,
            "inverse_temperature": self.inverse_temperature,
            "max_weight": self.max_weight,
        }
