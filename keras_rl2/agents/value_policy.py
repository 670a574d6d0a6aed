"""Agents that act by the values of all actions."""

from collections.abc import Mapping
from typing import Any
from typing import cast

import gymnasium
import keras
from keras import ops

from keras_rl2.agents.agent import Agent
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions.discrete_head import DiscreteHead
from keras_rl2.distributions.standard_noise import StandardNoise
from keras_rl2.exploration import JoinedNoise
from keras_rl2.exploration import PolicyNoise
from keras_rl2.layers import noise_given
from keras_rl2.losses.value_distributions import ValueDistribution
from keras_rl2.losses.value_distributions import value_distribution
from keras_rl2.networks import checks as network_checks
from keras_rl2.networks import inputs
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.policies.epsilon_greedy import EpsilonGreedy
from keras_rl2.policies.epsilon_noise import EpsilonNoise
from keras_rl2.spaces.trees import Tree


class ValuePolicy(Agent):
    """Base of agents with Q-values of Discrete actions, and ε-greedy.

    The network outputs N numbers for each action, of which `values` computes
    the Q-value: the number itself, or the mean of a distribution. That of `DQN`
    may be recurrent.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.DQN.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> isinstance(agent, rl.agents.ValuePolicy)
    True
    """

    action_kinds = (gymnasium.spaces.Discrete,)
    # Without it, values of rarely visited states grow without bound.
    default_normalization = "layer"
    default_adam: Mapping[str, Any] = {"learning_rate": 5e-4}
    q_network: keras.Model
    #: Symbolic inputs of the network beside the observation, by name.
    further_inputs: Mapping[str, keras.KerasTensor] = {}
    #: Selects random actions.
    exploring: EpsilonGreedy
    #: Meaning of the network's outputs.
    values: ValueDistribution
    #: Whether the network outputs V and advantages.
    dueling = False
    #: Whether the network has `NoisyDense` layers, and their noise.
    noisy, noise_size = False, 0

    @classmethod
    def default_networks(
        cls,
        build: NetworkBuilder,
        *,
        dueling: bool = False,
        distributional: str | None = None,
        atoms: int = 51,
        noisy: bool = False,
        **settings: Any,
    ) -> tuple[keras.Model]:
        """Makes a Q-network."""
        each = value_distribution(distributional, atoms, (0, 1), "mse").atoms
        units = build.head.parameter_sizes[0] * each
        outputs = (each, units) if dueling else units
        seed = build.seed
        return (build.network("q_network", outputs, seed, noisy=noisy),)

    def given_networks(self) -> dict[str, keras.Model]:
        """Returns the network, keyed by constructor argument."""
        return {"q_network": self.q_network}

    def build_networks(self) -> None:
        """Checks the network against the spaces."""
        actions, atoms = self._head.n, self.values.atoms
        network_checks.check_width(
            "q_network",
            self.q_network,
            self.policy,
            (actions + self.dueling) * atoms,
            why=f": {'the value of the state and ' * self.dueling}"
            f"{actions} actions, {atoms} for each",
            **self.further_inputs,
        )
        if self.policy.memory is None:
            seen = inputs.inputs_for(
                self.q_network,
                self.policy.encode.network_input,
                **self.further_inputs,
            )
            network_checks.check_value_ending(self.q_network, seen)

    @property
    def _head(self) -> DiscreteHead:
        """The policy head."""
        return cast(DiscreteHead, self.policy.head)

    def call(self, observation: Tree[Tensor], training: bool = False) -> Tensor:
        """Returns Q-values `[B, n]` float32."""
        encoded = self.policy.encode(observation)
        return self.q_values(self.outputs_of(self.q_network, encoded, training))

    def q_values(self, outputs: Tensor) -> Tensor:
        """Returns the Q-values `[B, n]` of outputs `[B, n, N]`, float32."""
        return self.values.mean(outputs)

    def allowed_values(
        self, observation: Tree[Tensor], outputs: Tensor
    ) -> Tensor:
        """Returns Q-values of outputs, much lower for forbidden actions."""
        return self.policy.allowed(observation, self.q_values(outputs))

    def outputs_of(
        self,
        network: keras.Model,
        encoded: Tree[Tensor],
        training: bool = False,
        **further: Tensor,
    ) -> Tensor:
        """Returns the outputs of a network by action, `[B, n, N]` float32.

        A class whose network has `further_inputs` adds them here, by name.

        Args:
            network: `keras.Model`. The Q-network, or its target network.
            encoded: tree of `[B, ...]`. Observations, by `policy.encode`.
            training: bool. Passed on to the network. Defaults to `False`.
            **further: `[B, ...]` each. Further inputs by name.
        """
        outputs = inputs.run_network(network, encoded, training, **further)
        rows = self._head.n + bool(self.dueling)
        outputs = ops.reshape(outputs, (-1, rows, self.values.atoms))
        if not self.dueling:
            return outputs
        value, advantages = outputs[:, :1], outputs[:, 1:]
        return value + advantages - ops.mean(advantages, axis=1, keepdims=True)

    def value(self, observation: Tree[Tensor]) -> Tensor:
        """Returns the value of the best allowed action, `[B]` float32."""
        return ops.max(self._choices(observation), axis=-1)

    def values_of_taken(
        self, observation: Tree[Tensor], action: Tensor, training: bool = False
    ) -> list[Tensor]:
        """Returns the network's Q-values of given actions, `[B]` float32."""
        index = ops.cast(action, "int32")[:, None]
        values = self(observation, training=training)
        # [B, n] -> [B]
        return [ops.take_along_axis(values, index, axis=1)[:, 0]]

    def _choices(
        self, observation: Tree[Tensor], training: bool = False
    ) -> Tensor:
        """Returns Q-values `[B, n]`, much lower for forbidden actions."""
        return self.policy.allowed(
            observation, self.call(observation, training)
        )

    def sample_action(self, observation: Tree[Tensor], noise: Tensor) -> Tensor:
        """Returns the best actions, or random ones selected by the noise."""
        drawn = None
        if self.noisy:
            noise, drawn = ops.split(noise, [self._head.n], axis=-1)
        with noise_given(drawn):
            return self.policy.head(self._choices(observation)).sample(noise)

    def greedy_action(self, observation: Tree[Tensor]) -> Tensor:
        """Returns the best actions `[B]`."""
        return self.policy.head(self._choices(observation)).mode()

    @property
    def noise(self) -> PolicyNoise:
        """Random actions with the present ε, then noise of `NoisyDense`."""
        epsilon = self.exploring.present(self.policy.noise_steps)
        own = EpsilonNoise(self._head.n, epsilon, self.policy.is_masked)
        if not self.noisy:
            return own
        return JoinedNoise([own, StandardNoise("normal", self.noise_size)])

    def exploration_logs(self) -> dict[str, float]:
        """Returns the current probability of a random action."""
        return {"epsilon": self.exploring.present(self.policy.noise_steps)}
