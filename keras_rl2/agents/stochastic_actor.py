"""Off-policy agents whose policy has probabilities that are learned."""

from typing import Any

import keras
from keras import ops

from keras_rl2.agents import network_checks
from keras_rl2.agents.network_outputs import as_logits
from keras_rl2.agents.network_outputs import check_policy_ending
from keras_rl2.agents.objective import Batch
from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.arguments import check_in_range
from keras_rl2.distributions import Distribution
from keras_rl2.network_inputs import inputs_for
from keras_rl2.network_inputs import run_network
from keras_rl2.shapes import Tensor

# Actions that a dataset repeats exactly would have a Gaussian become a point,
# and the gradient of its mean grow without end.
_MIN_LOG_STD = -5.0
_MAX_LOG_STD = 2.0


class StochasticActor(OffPolicyAgent):
    """Base of agents that make the actions of a dataset more probable.

    The policy is that of `OnPolicyAgent`: a network that gives the parameters
    of a distribution, and for a Box a log standard deviation that does not
    depend on the observation, unless the network gives that as well.

    Args:
        actor: `keras.Model` from observations to the parameters of the
            policy.
        initial_log_std: float. Log standard deviation that a Box policy
            starts from; it stays within -5 ... 2. Defaults to `0.0`.
        **kwargs: Arguments of `OffPolicyAgent`.
    """

    def __init__(
        self,
        actor: keras.Model,
        *,
        initial_log_std: float = 0.0,
        **kwargs: Any,
    ) -> None:
        check_in_range(
            initial_log_std=(initial_log_std, _MIN_LOG_STD, _MAX_LOG_STD)
        )
        network_checks.check_is_network("actor", actor)
        super().__init__(**kwargs)
        self.actor = actor
        self.initial_log_std = initial_log_std
        self.log_std: keras.Variable | None = None
        self._gives_probabilities = False

    def _build_actor(self, *sizes: int, squash: bool = False) -> None:
        """Checks the actor against the spaces, and makes what is beside it.

        Args:
            *sizes: int. Widths of its output that will do.
            squash: bool. Whether the means of a Box are squashed by tanh.
                Defaults to `False`.
        """
        head = self.policy_head
        units = network_checks.check_policy(self, self.actor, *sizes)
        self._gives_probabilities = check_policy_ending(
            self.actor,
            inputs_for(self.actor, self.encode.network_input),
            self.action_space,
            squash=squash,
        )
        if head.log_std_size and units == head.parameter_sizes[0]:
            self.log_std = self.add_weight(
                shape=(head.log_std_size,),
                initializer=keras.initializers.Constant(self.initial_log_std),
                name="log_std",
            )

    # Networks.

    @property
    def acting_networks(self) -> list[keras.Model]:
        """Networks that the policy is made of."""
        return [self.actor]

    @property
    def acting_variables(self) -> list[keras.Variable]:
        """Variables that acting depends on."""
        return [*super().acting_variables, *self._own_variables]

    @property
    def _own_variables(self) -> list[keras.Variable]:
        """Variables of the policy that are in no network."""
        return [] if self.log_std is None else [self.log_std]

    def call(self, observation: Any, training: bool = False) -> Tensor:
        """Returns the parameters of the policy `[B, P]`."""
        parameters: Tensor = run_network(
            self.actor, self.encode(observation), training
        )
        return parameters

    def distribution(self, observation: Any) -> Distribution:
        """Returns the distribution of actions for raw observations."""
        return self.policy_of(self(observation), observation)

    def policy_of(self, parameters: Tensor, observation: Any) -> Distribution:
        """Returns the action distribution that parameters stand for.

        Args:
            parameters: `[B, P]`. What the network gave.
            observation: `[B, ...]`. Raw observations, with a mask perhaps.

        Returns:
            `Distribution` of `[B]` actions.
        """
        if self._gives_probabilities:
            parameters = as_logits(parameters)
        parameters = self.allowed(observation, parameters)
        return self.policy_head(parameters, self._present_log_std())

    def _present_log_std(self) -> Tensor | None:
        """Returns the log standard deviation `[A]` beside the network."""
        if self.log_std is None:
            return None
        return ops.clip(
            ops.convert_to_tensor(self.log_std), _MIN_LOG_STD, _MAX_LOG_STD
        )

    # Acting.

    def sample_action(self, observation: Any, noise: Tensor) -> Tensor:
        """Draws actions of the policy from standard noise."""
        return self.distribution(observation).sample(noise)

    def greedy_action(self, observation: Any) -> Tensor:
        """Returns the policy's most probable actions."""
        return self.distribution(observation).mode()

    # Learning.

    def trained_policy(self, batch: Batch) -> Distribution:
        """Returns the policy of a minibatch, of a forward pass that trains.

        Args:
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            `Distribution` of `[B]` actions.
        """
        observation = batch["observation"]
        return self.policy_of(self(observation, training=True), observation)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        return {
            **super().get_config(),
            "initial_log_std": self.initial_log_std,
        }
