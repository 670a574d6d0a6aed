"""Off-policy agents that learn the probabilities of actions."""

from typing import Unpack

import keras
from keras import ops

from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.agents.off_policy_agent import OffPolicyArguments
from keras_rl2.agents.stochastic_policy import StochasticPolicy
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Distribution
from keras_rl2.networks import checks as network_checks
from keras_rl2.updates.updater import Batch

# Where a dataset repeats actions exactly, the standard deviation of a Gaussian
# would vanish, and the gradient of its mean grow without bound.
_MIN_LOG_STD = -5.0
_MAX_LOG_STD = 2.0


class StochasticActorArguments(OffPolicyArguments, total=False):
    """Arguments of `StochasticActor` for subclasses; see there."""

    initial_log_std: float


class StochasticActor(StochasticPolicy, OffPolicyAgent):
    """Base of agents that increase the probability of a dataset's actions.

    The log standard deviation that `StochasticPolicy` learns apart from the
    network stays within bounds here.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy.
        initial_log_std: float. Initial log standard deviation of a Box policy;
            it stays within -5 ... 2. Defaults to `0.0`.
    """

    def __init__(
        self,
        actor: keras.Model,
        *,
        initial_log_std: float = 0.0,
        **kwargs: Unpack[OffPolicyArguments],
    ) -> None:
        check_in_range(
            initial_log_std=(initial_log_std, _MIN_LOG_STD, _MAX_LOG_STD)
        )
        network_checks.check_is_network("actor", actor)
        super().__init__(**kwargs)
        self.actor = actor
        self.initial_log_std = initial_log_std

    def _build_actor(self, *sizes: int, squash: bool = False) -> None:
        """Checks the actor, and makes the policy's other variables.

        Args:
            *sizes: int. Valid widths of its output.
            squash: bool. Whether the means of a Box are squashed by tanh.
                Defaults to `False`.
        """
        units = network_checks.check_policy(self.task, self.actor, *sizes)
        self._check_actor_ending(squash)
        self._add_log_std(units, self.initial_log_std)

    def _present_log_std(self) -> Tensor | None:
        """Returns the log standard deviation `[A]` apart from the network."""
        log_std = super()._present_log_std()
        if log_std is None:
            return None
        return ops.clip(log_std, _MIN_LOG_STD, _MAX_LOG_STD)

    # Learning.

    def trained_policy(self, batch: Batch) -> Distribution:
        """Returns the policy of a minibatch, from a training forward pass.

        Args:
            batch: dict of `[B, ...]`; see `train_step`.

        Returns:
            `Distribution` of `[B]` actions.
        """
        observation = batch["observation"]
        return self.policy_of(self(observation, training=True), observation)
