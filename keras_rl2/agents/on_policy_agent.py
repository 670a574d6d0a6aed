"""Agents that learn from new rollouts of their current policy."""

import functools
import operator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Literal
from typing import Unpack

import gymnasium
import keras
from keras import ops

from keras_rl2 import losses
from keras_rl2 import returns
from keras_rl2.agents.agent import Agent
from keras_rl2.agents.agent import AgentArguments
from keras_rl2.agents.stochastic_policy import ACTION_UNITS
from keras_rl2.agents.stochastic_policy import StochasticPolicy
from keras_rl2.basics import arguments
from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.collecting.trajectory import unpack
from keras_rl2.distributions import Distribution
from keras_rl2.losses import statistics
from keras_rl2.networks import checks as network_checks
from keras_rl2.networks import inputs
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.networks.model_layers import counting_layers
from keras_rl2.networks.sequences import Sequences
from keras_rl2.networks.sequences import flat
from keras_rl2.networks.sequences import sequences_like
from keras_rl2.policies.agent_protocols import OwnRollout
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.supported import is_image
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.updates import critics
from keras_rl2.updates.rollout_samples import RolloutSamples
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


class OnPolicyArguments(AgentArguments, total=False):
    """Arguments of `OnPolicyAgent` for subclasses; see there."""

    entropy_coefficient: float
    value_coefficient: float
    max_gradient_norm: float | None
    initial_log_std: float
    action_units: Literal["half_range", "environment"]


class RolloutLearner(Agent):
    """Base of agents that learn from samples of new rollouts."""

    #: Makes the samples of a rollout.
    rollout_samples: RolloutSamples
    #: Shapes of those entries of a sample that are not scalars, by name.
    sample_shapes: Mapping[str, tuple[int, ...]] = {}

    def prepare(
        self, trajectory: Trajectory, batch_size: int | None = None
    ) -> tuple[dict[str, Any], dict[str, float]]:
        """Computes the samples of a rollout, in one compiled call or several.

        Args:
            trajectory: `Trajectory` of T steps of B environments.
            batch_size: int or None. Observations that the networks take in one
                call, all at once with `memory`; None for as many as take 16 MiB
                as float32. Defaults to `None`.

        Returns:
            Samples, a dict of arrays `[T * B, ...]` (see `sample_spec`), and
            statistics, a dict of floats.
        """
        with self.devices.placement():
            return self.rollout_samples.prepare(trajectory, batch_size)

    def update(self, batch: Batch) -> Terms:
        """Makes an update; layers that count rows see those that count."""
        if counting_layers(self):
            counted = batch["weight"] > 0
            batch = map_leaves(lambda each: each[counted], batch)
        return super().update(batch)

    def sample_spec(
        self, length: int | None = None
    ) -> dict[str, Tree[ArraySpec]]:
        """Returns shape and dtype of each entry of one sample.

        Args:
            length: int or None. Length L of sequences, for recurrent agents:
                all entries then have L steps, and there are `begins` and the
                `state` before the first step. Defaults to `None`.

        Returns:
            dict: `observation` and `action` as collected; `returns`, the value
            target, and `value` before the updates of the round; and where
            there is a policy, its `log_prob` and `advantage`. All but the
            first two are float32, and scalars except in `sample_shapes`.
        """
        return self.rollout_samples.spec(length)

    def discounts(self, arrays: dict[str, Any]) -> Tensor:
        """Returns the discount factor of each step `[T, B]`; 0 at the end."""
        going_on = 1.0 - ops.cast(arrays["terminated"], "float32")
        return self.gamma * going_on


class OnPolicyAgent(RolloutLearner, StochasticPolicy):
    """Base of actor-critics that learn from rollouts of their current policy.

    There are either two networks, or one with two outputs (policy, value) on a
    shared trunk, which may be recurrent. A network for a Box action space
    outputs A means, and the agent learns a log standard deviation that does
    not depend on the observation; or it outputs 2A numbers, means and log
    standard deviations.

    A subclass may override `loss_terms`, the loss of a minibatch from one
    forward pass.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy;
            or to (parameters, value) where there is no critic.
        critic: `keras.Model` from observations to values `[B, 1]`, or None
            where `actor` has both outputs. Defaults to `None`.
        gae_lambda: float. Decay of the advantage estimate; 1 is the n-step
            advantage. Defaults to `0.95`.
        entropy_coefficient: float. Weight of the entropy bonus. Defaults to
            `0.0`.
        value_coefficient: float. Weight of the value loss. Defaults to `0.5`.
        normalize_advantages: bool. Whether advantages are normalised within
            each minibatch. Defaults to `False`.
        initial_log_std: float. Initial log standard deviation of a Box policy.
            Defaults to `0.0`.
        action_units: str. Units of the Gaussian of a Box: `"half_range"`, in
            which finite bounds are -1 and 1, or `"environment"`. Defaults to
            `"half_range"`.

    Example:

    >>> import numpy as np
    >>> import keras_rl2 as rl
    >>> agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> isinstance(agent, OnPolicyAgent)
    True
    >>> agent.value(np.zeros((3, 4), "float32")).shape
    TensorShape([3])
    """

    # As is common for PPO.
    default_adam: Mapping[str, Any] = {"learning_rate": 3e-4, "epsilon": 1e-5}
    takes_memory = True
    takes_shared = True
    takes_critic_sees = True
    takes_state_dependent_noise = True
    # A policy that depends on its minibatch is not the one that acted.
    normalizations = ("none", "layer", "spectral")
    shared_numbers: tuple[str, ...] = (
        *("gamma", "gae_lambda"),
        *("entropy_coefficient", "value_coefficient"),
    )
    statistics_names: tuple[str, ...] = (
        *("loss", "policy_loss", "value_loss", "entropy", "gradient_norm"),
    )
    #: Whether a single network must have a value output.
    needs_value = True

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,
        *,
        gae_lambda: float = 0.95,
        entropy_coefficient: float = 0.0,
        value_coefficient: float = 0.5,
        normalize_advantages: bool = False,
        max_gradient_norm: float | None = 0.5,
        initial_log_std: float = 0.0,
        action_units: Literal["half_range", "environment"] = "half_range",
        **kwargs: Unpack[AgentArguments],
    ) -> None:
        arguments.check_in_range(
            initial_log_std=(initial_log_std, -20.0, 20.0),
            gae_lambda=(gae_lambda, 0.0, 1.0),
            entropy_coefficient=(entropy_coefficient, 0.0, 1e12),
            value_coefficient=(value_coefficient, 0.0, 1e12),
        )
        arguments.check_flag(normalize_advantages=normalize_advantages)
        arguments.check_choice(action_units=(action_units, ACTION_UNITS))
        super().__init__(  # type: ignore[misc]
            max_gradient_norm=max_gradient_norm, **kwargs
        )
        self.actor = actor
        self.critic = critic
        self.initial_log_std = initial_log_std
        self.action_units = action_units
        self.gae_lambda = gae_lambda
        self.entropy_coefficient = entropy_coefficient
        self.value_coefficient = value_coefficient
        self.normalize_advantages = normalize_advantages
        self.rollout_samples = RolloutSamples(self)

    @classmethod
    def own_rollout(cls, observation_space: gymnasium.Space[Any]) -> OwnRollout:
        """Returns the default settings of rollouts.

        They are those of Stable-Baselines3 for PPO, or where images are
        observed, those of OpenAI Baselines for Atari; rewards are scaled.
        """
        if any(map(is_image, leaves(space_tree(observation_space)))):
            return OwnRollout(steps=1024, passes=4, batch_size=256)
        return OwnRollout(steps=2048, passes=10, batch_size=64)

    def loss_terms(
        self, policy: Distribution, value: Tensor, batch: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Computes the loss of a minibatch: here, the plain policy gradient.

        Args:
            policy: Distribution of `[B]` actions, from the forward pass.
            value: `[B]` float32. Values from the same pass.
            batch: dict of `[B, ...]`; see `sample_spec`. `weight` is 1 for
                samples that count and 0 for others.

        Returns:
            dict of scalars: `loss`, which is minimised, and others for the
            logs.
        """
        log_prob = self.log_prob_of(policy, batch["action"])
        advantage = statistics.of_components(self.advantages(batch), log_prob)
        return self.total_loss(
            losses.policy_gradient(log_prob, advantage),
            ops.square(batch["returns"] - value),
            policy,
            batch["weight"],
        )

    def log_prob_of(self, policy: Distribution, action: Tensor) -> Tensor:
        """Returns the log-probabilities of actions in the policy's loss.

        A subclass may return one for each component of an action, or for each
        token. Each then has its own probability ratio, and `sample_shapes` has
        the entry `"log_prob": (C,)`.

        Args:
            policy: Distribution of `[B]` actions.
            action: `[B, ...]`. The actions.

        Returns:
            `[B]` float32, or `[B, C]`.
        """
        return policy.log_prob(action)

    def advantages(self, batch: dict[str, Tensor]) -> Tensor:
        """Returns the advantages of a minibatch, optionally normalised."""
        advantage = batch["advantage"]
        if not self.normalize_advantages:
            return advantage
        weight = statistics.of_components(batch["weight"], advantage)
        return statistics.normalize(advantage, weight)

    def total_loss(
        self,
        policy_losses: Tensor,
        value_losses: Tensor,
        policy: Distribution,
        weight: Tensor,
    ) -> dict[str, Tensor]:
        """Adds up policy loss, value loss and entropy bonus.

        Args:
            policy_losses: `[B]`, or `[B, C]`. Loss of each sample's policy.
            value_losses: `[B]`. Loss of each sample's value.
            policy: Distribution of `[B]` actions.
            weight: `[B]` float32. 1 for samples that count, else 0.

        Returns:
            dict of scalars: `loss`, `policy_loss`, `value_loss`, `entropy`.
        """
        policy_loss = statistics.weighted_mean(
            policy_losses, statistics.of_components(weight, policy_losses)
        )
        value_loss = statistics.weighted_mean(value_losses, weight)
        entropy = statistics.weighted_mean(policy.entropy(), weight)
        loss = policy_loss + self.value_coefficient * value_loss
        return {
            "loss": loss - self.entropy_coefficient * entropy,
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "entropy": entropy,
        }

    def objectives(self) -> dict[str, Objective]:
        """Returns the loss of a minibatch of samples; see `loss_terms`."""
        networks = [self.actor, *([] if self.critic is None else [self.critic])]
        return {
            "actor_critic": Objective(
                self._terms, networks, self.trainable_variables
            )
        }

    def train_on_trajectory(
        self, arrays: dict[str, Tensor]
    ) -> dict[str, Tensor]:
        """Makes one update from a whole rollout, with one forward pass.

        It equals `prepare` and `train_step` where a rollout is one minibatch:
        targets are computed from the values of the same pass, as constants.

        Args:
            arrays: dict; see `Trajectory.packed_arrays`, in the graph.

        Returns:
            dict of scalars for the logs.
        """

        def terms_of(arrays: dict[str, Tensor]) -> dict[str, Tensor]:
            given = self.rollout_samples.of(unpack(arrays), training=True)
            return self.loss_terms(*given)

        # Of this class: those of a subclass are for minibatches.
        [(name, objective)] = OnPolicyAgent.objectives(self).items()
        objectives = {name: objective._replace(terms=terms_of)}
        with self.target_networks.moving(self.updates_made):
            terms = self._updater.update(objectives, arrays)
        return self._logs(terms)

    def _terms(self, batch: dict[str, Any]) -> dict[str, Tensor]:
        """Runs the networks on a minibatch, and returns `loss_terms`."""
        if self.policy.memory is None:
            policy, value = self.policy_and_value(
                batch["observation"], training=True
            )
            return self.loss_terms(policy, value, batch)
        batch = dict(batch)
        begins, state = batch.pop("begins"), batch.pop("state")
        parameters, value = self.run_sequences(
            batch["observation"], begins, state, training=True
        )
        steps = map_leaves(flat, batch)
        policy = self.policy_of(flat(parameters), steps["observation"])
        return self.loss_terms(policy, flat(value), steps)

    def targets(
        self,
        arrays: dict[str, Any],
        log_prob: Tensor | None,
        values: Tensor,
        next_values: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Returns the advantages and value targets of a rollout.

        Args:
            arrays: dict; see `Trajectory.arrays`, in the graph.
            log_prob: `[T, B]` or None. Log-probabilities of the actions under
                the current policy, where an earlier policy may have acted.
            values: `[T, B]` float32. Values of the observations.
            next_values: `[T, B]` float32. Values of the true next
                observations.

        Returns:
            Advantages and value targets, `[T, B]` each.
        """
        del log_prob
        return returns.generalized_advantage_estimation(
            arrays["reward"],
            self.discounts(arrays),
            values,
            next_values,
            self.gae_lambda,
            truncated=arrays["truncated"],
        )

    @classmethod
    def default_networks(
        cls, build: NetworkBuilder, **settings: Any
    ) -> tuple[keras.Model, ...]:
        """Makes a policy and a value network, or one with both outputs."""
        units = (build.head.parameter_sizes[0], 1)
        if build.shared and build.memory is not None:
            return (build.recurrent("actor_critic", units, build.seed),)
        if build.shared:
            return (build.actor_critic(),)
        actor_seed, critic_seed = build.seeds(2)
        return (
            build.actor(build.head.parameter_sizes[0], actor_seed),
            build.network("critic", 1, critic_seed, remembers=False),
        )

    def given_networks(self) -> dict[str, keras.Model | None]:
        """Returns the networks, keyed by constructor argument."""
        return {"actor": self.actor, "critic": self.critic}

    def build_networks(self) -> None:
        """Checks the networks against the spaces and makes all variables."""
        units = network_checks.check_actor_critic(
            self.policy, self.actor, self.critic, self.needs_value
        )
        self._complete_policy(units)
        if self.policy.memory is not None:
            return
        valuing, output = self.critic or self.actor, int(self.critic is None)
        if self.critic is not None or self.needs_value:
            seen = self.policy.encode.network_input
            network_checks.check_value_ending(
                valuing, inputs.inputs_for(valuing, seen), output
            )

    def critic_variables(self) -> list[keras.Variable]:
        """Trainable variables that a `critic_optimizer` updates.

        Raises:
            ValueError: If actor and critic share variables.
        """
        if self.critic is None:
            raise ValueError(
                "Expected a separate critic for a `critic_optimizer`. "
                "Received: one network with a shared trunk, so that both "
                "optimizers would own its variables"
            )
        critics.check_apart([self.actor, self.critic])
        return list(self.critic.trainable_variables)

    def call(self, observation: Tree[Tensor], training: bool = False) -> Tensor:
        """Returns the parameters of the policy `[B, P]`."""
        return self._parts(super().call(observation, training))[0]

    def policy_and_value(
        self,
        rows: Tree[Tensor],
        steps: int | None = None,
        training: bool = False,
    ) -> tuple[Distribution, Tensor]:
        """Returns the policy of the first rows, or all, and all values."""
        acted_on = functools.partial(
            map_leaves, operator.itemgetter(slice(steps))
        )
        encoded = self.policy.encode(rows)
        if self.critic is None:
            outputs = inputs.run_network(self.actor, encoded, training)
            parameters, value = self._parts(outputs)
            parameters = acted_on(parameters)
        else:
            parameters = inputs.run_network(
                self.actor, acted_on(encoded), training
            )
            value = inputs.one_value_each(
                inputs.run_network(self.critic, encoded, training)
            )
        return self.policy_of(parameters, acted_on(rows)), value

    def run_sequences(
        self,
        observation: Tree[Tensor],
        begins: Tensor,
        state: Sequence[Tensor],
        training: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Runs a recurrent network on sequences `[B, T, ...]`.

        `begins` `[B, T]` is 1 where a step is the first of an episode, and
        `state` is that before the first step.

        Returns:
            The parameters of the policy `[B, T, P]`, and values `[B, T]`.
        """
        steps: Any = Sequences(observation, begins, {self.actor: state})
        seen = self.policy.encode(steps)
        outputs = inputs.run_network(self.actor, seen, training)
        parameters, value = self._parts(outputs)
        if self.critic is not None:
            rows = map_leaves(flat, observation)
            value = self.value(rows, training)
        sequences = sequences_like(begins)
        return sequences(parameters), sequences(value)

    def value(
        self, observation: Tree[Tensor], training: bool = False
    ) -> Tensor:
        """Returns values `[B]` float32 of raw observations `[B, ...]`."""
        encoded = self.policy.encode(observation)
        valuing = self.critic or self.actor
        outputs = inputs.run_network(valuing, encoded, training)
        if self.critic is None:
            return self._parts(outputs)[1]
        return inputs.one_value_each(outputs)

    def _parts(self, outputs: Any) -> tuple[Tensor, Tensor]:
        """Splits outputs into parameters `[B, P]` and values `[B]`.

        Values are 0 where the network outputs none.
        """
        if isinstance(outputs, (list, tuple)):
            return outputs[0], inputs.one_value_each(outputs[1])
        return outputs, ops.zeros_like(outputs[:, 0], "float32")
