"""Agents with a distribution of actions from a network."""

import math
from typing import Any

import keras
from keras import ops

from keras_rl2.agents.agent import Agent
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Distribution
from keras_rl2.distributions import StandardNoise
from keras_rl2.exploration import PolicyNoise
from keras_rl2.layers import StateDependentNoise
from keras_rl2.networks import checks as network_checks
from keras_rl2.networks import inputs
from keras_rl2.networks.model_layers import layers_within
from keras_rl2.spaces.trees import Tree

ACTION_UNITS = ("half_range", "environment")
"""Units of the actions of a Gaussian; see `OnPolicyAgent`."""

BOUNDS_FOR_DATA = (-5.0, 2.0)
"""Bounds of log standard deviations that are learned from fixed actions.

Where a dataset repeats actions exactly, the standard deviation of a Gaussian
would vanish, and the gradient of its mean grow without bound.
"""


class StochasticPolicy(Agent):
    """Base of agents with an actor that outputs parameters of a distribution.

    A network for Discrete actions outputs logits; the outputs of a network
    that ends in a softmax are taken as probabilities. Where a network for a
    Box outputs means only, the agent learns a log standard deviation that does
    not depend on the observation.

    Example:

    >>> import numpy as np
    >>> import keras_rl2 as rl
    >>> agent = rl.SAC.for_env("Pendulum-v1", hidden=(8,), seed=0)
    >>> isinstance(agent, rl.agents.StochasticPolicy)
    True
    >>> type(agent.distribution(np.zeros((1, 3)))).__name__
    'SquashedGaussian'
    """

    actor: keras.Model
    #: Log standard deviation `[A]` apart from the network, or None.
    log_std: keras.Variable | None = None
    #: Initial log standard deviation apart from the network.
    initial_log_std = 0.0
    #: Bounds within which it stays; None for no bounds.
    log_std_bounds: tuple[float, float] | None = None
    _gives_probabilities = False

    def _complete_policy(self, units: int, squash: bool = False) -> None:
        """Checks the layers of the actor, and adds what it has not got.

        Args:
            units: int. Width of its output: without log standard deviations, a
                variable is made for them.
            squash: bool. Whether its output comes before tanh. Defaults to
                `False`.
        """
        if self.policy.memory is None:
            self._gives_probabilities = network_checks.check_policy_ending(
                self.actor,
                inputs.inputs_for(self.actor, self.policy.encode.network_input),
                self.action_space,
                squash=squash,
            )
        found = layers_within(self.actor)
        noises = [x for x in found if isinstance(x, StateDependentNoise)]
        if len(noises) > len(self._noise_layers):
            raise ValueError(
                "Expected StateDependentNoise among the layers of the actor "
                f"itself. Received: {noises[0].name!r} within another layer"
            )
        head = self.policy.head
        if head.log_std_size and units == head.parameter_sizes[0]:
            self.log_std = self.add_weight(
                shape=(head.log_std_size,),
                initializer=keras.initializers.Constant(self.initial_log_std),
                name="log_std",
            )

    def build_actor(self, *sizes: int, squash: bool = False) -> None:
        """Checks the actor, whose output has one of the given widths."""
        units = network_checks.check_width(
            "actor", self.actor, self.policy, *sizes
        )
        self._complete_policy(units, squash)

    @property
    def acting_variables(self) -> list[keras.Variable]:
        """Variables that acting depends on."""
        return [*super().acting_variables, *self.policy_variables]

    @property
    def policy_variables(self) -> list[keras.Variable]:
        """Variables of the policy that are in no network."""
        return [] if self.log_std is None else [self.log_std]

    actor_variables = policy_variables

    def call(self, observation: Tree[Tensor], training: bool = False) -> Any:
        """Returns the output of the actor, parameters `[B, P]`."""
        encoded = self.policy.encode(observation)
        return inputs.run_network(self.actor, encoded, training)

    def distribution(
        self, observation: Tree[Tensor], training: bool = False
    ) -> Distribution:
        """Returns the distribution of actions for raw observations."""
        # By `self(observation)`, Keras would forget losses that critics added.
        return self.policy_of(self.call(observation, training), observation)

    def policy_of(
        self, parameters: Tensor, observation: Tree[Tensor]
    ) -> Distribution:
        """Returns the distribution of actions with the given parameters.

        Args:
            parameters: `[B, P]`. Outputs of the network.
            observation: `[B, ...]`. Raw observations, with or without a mask.

        Returns:
            `Distribution` of `[B]` actions.
        """
        if self._gives_probabilities:
            parameters = inputs.as_logits(parameters)
        parameters = self.policy.allowed(observation, parameters)
        return self.policy.head(parameters, self._present_log_std())

    def _present_log_std(self) -> Tensor | None:
        """Returns the log standard deviation `[A]` apart from the network."""
        if self.log_std is None:
            return None
        log_std = ops.cast(self.log_std, "float32")
        if self.log_std_bounds is None:
            return log_std
        return ops.clip(log_std, *self.log_std_bounds)

    @property
    def _noise_layers(self) -> list[StateDependentNoise]:
        """The layer of state-dependent noise, if there is one."""
        layers = self.actor.layers
        return [
            each for each in layers if isinstance(each, StateDependentNoise)
        ]

    @property
    def noise(self) -> PolicyNoise:
        """The noise that `sample_action` turns into actions, at present."""
        for layer in self._noise_layers:
            size = math.prod(layer.log_std.shape)
            return StandardNoise("normal", size, layer.resample_every)
        return super().noise

    def sample_action(self, observation: Tree[Tensor], noise: Tensor) -> Tensor:
        """Draws actions of the policy from standard noise."""
        for layer in self._noise_layers:
            network = keras.Model(self.actor.input, layer.input)
            encoded = self.policy.encode(observation)
            features = inputs.run_network(network, encoded)
            noise = layer.standardized(features, noise)
        return self.distribution(observation).sample(noise)

    def greedy_action(self, observation: Tree[Tensor]) -> Tensor:
        """Returns the policy's most probable actions."""
        return self.distribution(observation).mode()
