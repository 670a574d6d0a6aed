"""Implicit Q-learning."""

import functools
from typing import Any
from typing import Unpack

import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2.agents.off_policy_agent import CriticAgent
from keras_rl2.agents.off_policy_agent import TargetCriticArguments
from keras_rl2.agents.stochastic_policy import BOUNDS_FOR_DATA
from keras_rl2.agents.stochastic_policy import StochasticPolicy
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import DiagonalGaussian
from keras_rl2.distributions import Distribution
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.networks.inputs import one_value_each
from keras_rl2.networks.inputs import run_network
from keras_rl2.spaces.trees import Tree
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class IQL(StochasticPolicy, CriticAgent):
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
        value_network: `keras.Model` from observations to values `[B, 1]`.
        expectile: float between 0 and 1. τ; 0.5 is the mean. Defaults to
            `0.7`.
        inverse_temperature: float. β; 0 is behavior cloning. Defaults to
            `3.0`.
        max_weight: float. w, maximum weight of an action. Defaults to `100.0`.
        initial_log_std: float. Initial log standard deviation of a Box policy;
            it stays within -5 ... 2. Defaults to `0.0`.

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

    log_std_bounds = BOUNDS_FOR_DATA
    value_network: keras.Model
    actor_statistics = ("advantage_weight",)
    statistics_names = (
        *CriticAgent.statistics_names,
        *("value_loss", "advantage_weight"),
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
        **kwargs: Unpack[TargetCriticArguments],
    ) -> None:
        check_in_range(
            # At either end the expectile is the minimum or the maximum.
            expectile=(expectile, 1e-6, 1.0 - 1e-6),
            inverse_temperature=(inverse_temperature, 0.0, 1e12),
            max_weight=(max_weight, 1e-12, 1e12),
            initial_log_std=(initial_log_std, *BOUNDS_FOR_DATA),
        )
        super().__init__(actor, critic, value_network, **kwargs)
        self.expectile = expectile
        self.inverse_temperature = inverse_temperature
        self.max_weight = max_weight
        self.initial_log_std = initial_log_std

    @classmethod
    def default_networks(
        cls, build: NetworkBuilder, **settings: Any
    ) -> tuple[Any, ...]:
        """Makes an actor, critics and a value network."""
        networks = super().default_networks(build, **settings)
        # The seed after those of the critics and the actor.
        seed = build.seeds(len(networks[1]) + 2)[-1]
        return *networks, build.network("value_network", 1, seed)

    def given_networks(self) -> dict[str, Any]:
        """Returns the networks, keyed by constructor argument."""
        given = super().given_networks()
        return {**given, "value_network": self.value_network}

    def value(
        self, observation: Tree[Tensor], training: bool = False
    ) -> Tensor:
        """Returns values `[B]` float32 of raw observations `[B, ...]`."""
        encoded = self.policy.encode(observation)
        return one_value_each(
            run_network(self.value_network, encoded, training)
        )

    def policy_of(
        self, parameters: Tensor, observation: Tree[Tensor]
    ) -> Distribution:
        """Returns the distribution of actions; Box ones are in the unit box."""
        log_std = self._present_log_std()
        if log_std is None:
            return super().policy_of(parameters, observation)
        mean = ops.tanh(ops.cast(parameters, "float32"))
        return DiagonalGaussian(mean, log_std)

    def sample_action(self, observation: Tree[Tensor], noise: Tensor) -> Tensor:
        """Draws actions of the policy, clipped to the unit box for a Box."""
        action = super().sample_action(observation, noise)
        return action if self.is_discrete else ops.clip(action, -1.0, 1.0)

    def objectives(self) -> dict[str, Objective]:
        """Returns the losses of critics, value network and policy."""
        made = super().objectives()
        critic = made.pop("critic")
        value = Objective(self.value_terms, [self.value_network])
        return {"critic": critic, "value": value, **made}

    def next_value(self, batch: Batch) -> Tensor:
        """Returns the values of the next states, `[B]` float32."""
        return self.value(batch["next_observation"])

    def value_terms(self, batch: Batch) -> Terms:
        """Computes the loss of the value network on a minibatch."""
        each = losses.expectile(
            self._advantage(batch, training=True), self.expectile
        )
        return {"loss": ops.mean(batch["weight"] * each)}

    def actor_terms(self, batch: Batch) -> Terms:
        """Computes the loss of the policy on a minibatch."""
        weight = losses.advantage_weight(
            self._advantage(batch), self.inverse_temperature, self.max_weight
        )
        policy = self.distribution(batch["observation"], training=True)
        log_prob = policy.log_prob(batch["action"])
        each = losses.policy_gradient(log_prob, weight)
        return {
            "loss": ops.mean(batch["weight"] * each),
            "advantage_weight": ops.mean(weight),
        }

    def _advantage(self, batch: Batch, training: bool = False) -> Tensor:
        """Returns the advantages of the actions taken over V(s), `[B]`."""
        values = self.values(
            self.target_critics, batch["observation"], batch["action"]
        )
        smallest = ops.stop_gradient(functools.reduce(ops.minimum, values))
        return smallest - self.value(batch["observation"], training)
