"""Implicit Q-learning."""

import functools
from typing import Any
from typing import Unpack
from typing import cast

import gymnasium
import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.critic_agent import CriticAgent
from keras_rl2.agents.stochastic_actor import StochasticActor
from keras_rl2.agents.stochastic_actor import StochasticActorArguments
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import DiagonalGaussian
from keras_rl2.distributions import Distribution
from keras_rl2.distributions import PolicyHead
from keras_rl2.distributions import policy_head
from keras_rl2.distributions.discrete_head import DiscreteHead
from keras_rl2.networks import checks as network_checks
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.networks.inputs import inputs_for
from keras_rl2.networks.inputs import one_value_each
from keras_rl2.networks.inputs import run_network
from keras_rl2.networks.outputs import check_value_ending
from keras_rl2.spaces.trees import Tree
from keras_rl2.updates import critics
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class IQL(StochasticActor, CriticAgent):
    """Implicit Q-learning, for Box and Discrete actions.

    Learns from a fixed dataset without evaluating actions that are not in it.
    The value of a state is an expectile τ of the Q-values of the actions taken
    there, close to their maximum for a τ near 1; the policy imitates actions,
    weighted by their advantage:

        L_V = mean(|τ - 1(u < 0)| u²),   u = min_i Q'_i(s, a) - V(s)
        L_Q = Σ_i ½ mean((r + discount V(s') - Q_i(s, a))²)
        L_π = -mean(min(exp(β u), w) log π(a|s))

    where Q' are target critics, and the weights of the policy's loss are
    constants. All gradients are computed with the weights before the update.
    Training can continue online from a `ReplayDataset`, where the policy
    explores by sampling. `for_env(..., normalize_observations=True)` is
    recommended where the entries of an observation differ in scale: it needs
    far fewer updates.

    A Box policy is a Gaussian around the tanh of the actor's output, in the
    unit box, with a standard deviation that does not depend on the
    observation; samples are clipped to the box. It is not squashed as that of
    `SAC`: a squashed Gaussian has no sensible likelihood of actions on the
    bounds, which are common in data.

    Args:
        actor: `keras.Model` from observations to `[B, A]`, before tanh; or
            `[B, n]` logits.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to values `[B, 1]`; for Discrete actions, from
            observations to `[B, n]`. Or a pair of such models; for a single
            model, the agent makes a second one of the same architecture, with
            its own weights.
        value_network: `keras.Model` from observations to values `[B, 1]`.
        expectile: float between 0 and 1. τ; 0.5 is the mean. Defaults to
            `0.7`.
        inverse_temperature: float. β; 0 is behavior cloning. Defaults to
            `3.0`.
        max_weight: float. w, maximum weight of an action. Defaults to `100.0`.

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
        **kwargs: Unpack[StochasticActorArguments],
    ) -> None:
        check_in_range(
            # At either end the expectile is the minimum or the maximum.
            expectile=(expectile, 1e-6, 1.0 - 1e-6),
            inverse_temperature=(inverse_temperature, 0.0, 1e12),
            max_weight=(max_weight, 1e-12, 1e12),
        )
        network_checks.check_is_network("value_network", value_network)
        given = critics.as_critics(critic, self.number_of_critics)
        super().__init__(actor, **kwargs)
        # Before the critics, as the second one may be made later: variables
        # must have the same order as when both are given, as in loading.
        self.value_network = value_network
        self.critics = given
        self.target_critics: list[keras.Model] = []
        self.expectile = expectile
        self.inverse_temperature = inverse_temperature
        self.max_weight = max_weight
        self._bind_requested()

    @classmethod
    def make_policy_head(cls, action_space: gymnasium.Space[Any]) -> PolicyHead:
        """Returns the head of a scaled unit box, or of Discrete actions."""
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
        # The seed after those of the critics and the actor.
        seed = build.seeds(number + 2)[-1]
        return actor, valuing, build.network("value_network", 1, seed)

    def given_networks(self) -> dict[str, Any]:
        """Returns the networks, keyed by constructor argument."""
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
            valuing, inputs_for(valuing, self.task.encode.network_input)
        )
        self.critics = critics.complete(
            self.task,
            self.actor,
            self.critics,
            self.number_of_critics,
            cast(DiscreteHead, head).n if self.is_discrete else None,
        )
        critics.check_apart([self.actor, *self.critics, valuing])
        self.make_targets()

    # Networks.

    def critic_variables(self) -> list[keras.Variable]:
        """Trainable variables that a `critic_optimizer` updates."""
        networks = [*self.critics, self.value_network]
        return [v for each in networks for v in each.trainable_variables]

    def value(self, observation: Tree[Tensor]) -> Tensor:
        """Returns values `[B]` float32 of raw observations `[B, ...]`."""
        return self._value(observation)

    def _value(
        self, observation: Tree[Tensor], training: bool = False
    ) -> Tensor:
        """Returns values of states, optionally from a training forward pass."""
        encoded = self.task.encode(observation)
        return one_value_each(
            run_network(self.value_network, encoded, training)
        )

    def policy_of(
        self, parameters: Tensor, observation: Tree[Tensor]
    ) -> Distribution:
        """Returns the distribution of actions with the given parameters.

        Args:
            parameters: `[B, P]`. Outputs of the network.
            observation: `[B, ...]`. Raw observations, with or without a mask.

        Returns:
            `Distribution` of `[B]` actions; Box actions are in the unit box.
        """
        log_std = self._present_log_std()
        if log_std is None:
            return super().policy_of(parameters, observation)
        mean = ops.tanh(ops.cast(parameters, "float32"))
        return DiagonalGaussian(mean, log_std)

    # Acting.

    def sample_action(self, observation: Tree[Tensor], noise: Tensor) -> Tensor:
        """Draws actions of the policy, clipped to the unit box for a Box."""
        action = super().sample_action(observation, noise)
        return action if self.is_discrete else ops.clip(action, -1.0, 1.0)

    # Learning.

    def objectives(self) -> dict[str, Objective]:
        """Returns the losses of critics, value network and policy."""
        return {
            "critic": Objective(self.critic_terms, self.critics),
            "value": Objective(self.value_terms, [self.value_network]),
            "actor": Objective(
                self.actor_terms, [self.actor], self._policy_variables
            ),
        }

    def critic_terms(self, batch: Batch) -> Terms:
        """Computes the loss of the critics on a minibatch.

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
        """Computes the loss of the value network on a minibatch.

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
        """Computes the loss of the policy on a minibatch.

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
        """Returns the advantages of the actions taken over V(s), `[B]`."""
        values = critics.values_of_taken(
            self.target_critics,
            self.task.encode(batch["observation"]),
            batch["action"],
            self.is_discrete,
        )
        smallest = ops.stop_gradient(functools.reduce(ops.minimum, values))
        return smallest - self._value(batch["observation"], training)
