"""Off-policy agents whose policy has probabilities that are learned."""

from typing import Any

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

# Actions that a dataset repeats exactly would have a Gaussian become a point,
# and the gradient of its mean grow without end.
_MIN_LOG_STD = -5.0
_MAX_LOG_STD = 2.0


class StochasticActor(StochasticPolicy, OffPolicyAgent):
    """Base of agents that make the actions of a dataset more probable.

    The log standard deviation that `StochasticPolicy` keeps beside the network
    stays within bounds here.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy.
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
        """Checks the actor against the spaces, and makes what is beside it.

        Args:
            *sizes: int. Widths of its output that will do.
            squash: bool. Whether the means of a Box are squashed by tanh.
                Defaults to `False`.
        """
        units = network_checks.check_policy(self.task, self.actor, *sizes)
        self._check_actor_ending(squash)
        self._add_log_std(units, self.initial_log_std)

    def _present_log_std(self) -> Tensor | None:
        """Returns the log standard deviation `[A]` beside the network."""
        log_std = super()._present_log_std()
        if log_std is None:
            return None
        return ops.clip(log_std, _MIN_LOG_STD, _MAX_LOG_STD)

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
