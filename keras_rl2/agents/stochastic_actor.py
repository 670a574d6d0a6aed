"""Off-policy agents that learn the probabilities of actions."""

import keras
from keras import ops

from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.agents.stochastic_policy import StochasticPolicy
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions import Distribution
from keras_rl2.networks import checks as network_checks
from keras_rl2.spaces.space_configs import GivenSpace
from keras_rl2.updates.updater import Batch

# Where a dataset repeats actions exactly, the standard deviation of a Gaussian
# would vanish, and the gradient of its mean grow without bound.
_MIN_LOG_STD = -5.0
_MAX_LOG_STD = 2.0


class StochasticActor(StochasticPolicy, OffPolicyAgent):
    """Base of agents that increase the probability of a dataset's actions.

    The log standard deviation that `StochasticPolicy` learns apart from the
    network stays within bounds here.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy.
        initial_log_std: float. Initial log standard deviation of a Box policy;
            it stays within -5 ... 2. Defaults to `0.0`.
        gamma: float. Discount factor. Defaults to `0.99`.
        max_gradient_norm: float or None. Global norm to which gradients are
            clipped; None for no clipping. Defaults to `None`.
        tau: float. Polyak coefficient, above 0 and at most 1: a target network
            moves by this fraction towards the network that it follows; 1
            copies it. Defaults to `0.005`.
        target_every: int. Number of updates per move of the target networks.
            Defaults to `1`.
        observation_space: `gymnasium.Space` or its config. Space of one
            environment's observations; None to take it from the first
            environment. Defaults to `None`.
        action_space: `gymnasium.Space` or its config. Space of one
            environment's actions; None to take it from the first environment.
            Defaults to `None`.
        seed: int or None. Seeds the sampling of `act`. Defaults to `None`.
        name: str or None. Name of the model. Defaults to `None`.
        dtype: str or None. Keras dtype policy; None for the global one.
            Defaults to `None`.
    """

    def __init__(
        self,
        actor: keras.Model,
        *,
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
            initial_log_std=(initial_log_std, _MIN_LOG_STD, _MAX_LOG_STD)
        )
        network_checks.check_is_network("actor", actor)
        super().__init__(
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
