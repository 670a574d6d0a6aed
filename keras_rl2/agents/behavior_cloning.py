"""Behaviour cloning: a policy by supervised learning."""

from typing import Any
from typing import Literal
from typing import Unpack

import keras
from keras import ops

from keras_rl2.agents.off_policy_agent import LearningArguments
from keras_rl2.agents.off_policy_agent import OffPolicyAgent
from keras_rl2.agents.stochastic_policy import ACTION_UNITS
from keras_rl2.agents.stochastic_policy import BOUNDS_FOR_DATA
from keras_rl2.agents.stochastic_policy import StochasticPolicy
from keras_rl2.basics.arguments import check_choice
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.updates.updater import Batch
from keras_rl2.updates.updater import Objective
from keras_rl2.updates.updater import Terms


@keras.saving.register_keras_serializable(package="keras_rl2")
class BehaviorCloning(StochasticPolicy, OffPolicyAgent):
    """Imitates the actions of a dataset, for every action space.

    Maximises the likelihood of the actions, independently of their rewards:

        L = -mean(log π(a|s))

    It has no critic and does not use rewards. With enough data the policy
    becomes as good as the one that made the data; it is the baseline for
    algorithms that use rewards. The policy is that of `PPO`:
    `rl.PPO(cloned.actor, critic)` continues from a cloned policy, once its
    `log_std`, if any, is assigned too. Where observations contain an action
    mask, only allowed actions are chosen.

    Args:
        actor: `keras.Model` from observations to the parameters of the policy;
            see `PPO`: logits; for a Box, means `[B, A]`, or means and log
            standard deviations `[B, 2A]`.
        gamma: float. Discount factor of the dataset's rewards; the loss does
            not use it. Defaults to `0.99`.
        initial_log_std: float. Initial log standard deviation of a Box policy
            whose network outputs means only; it stays within -5 ... 2.
            Defaults to `0.0`.
        action_units: str. Units of the Gaussian of a Box: `"half_range"`, in
            which finite bounds are -1 and 1, or `"environment"`. Defaults to
            `"half_range"`.

    Example:

    >>> import numpy as np
    >>> import keras_rl2 as rl
    >>> agent = rl.BehaviorCloning.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> observation = np.random.default_rng(0).normal(size=(64, 4))
    >>> batch = {"observation": observation.astype("float32"),
    ...          "action": (observation[:, 2] > 0).astype("int32")}
    >>> first = agent.train_on_batch(batch, return_dict=True)["log_prob"]
    >>> for _ in range(50):
    ...     last = agent.train_on_batch(batch, return_dict=True)["log_prob"]
    >>> bool(last > first)
    True

    Reference:
        - [Pomerleau, 1991](https://doi.org/10.1162/neco.1991.3.1.88).
    """

    default_adam = {"learning_rate": 1e-3}
    log_std_bounds = BOUNDS_FOR_DATA
    statistics_names = ("loss", "log_prob", "entropy", "gradient_norm")

    def __init__(
        self,
        actor: keras.Model,
        *,
        initial_log_std: float = 0.0,
        action_units: Literal["half_range", "environment"] = "half_range",
        **kwargs: Unpack[LearningArguments],
    ) -> None:
        check_choice(action_units=(action_units, ACTION_UNITS))
        check_in_range(initial_log_std=(initial_log_std, *BOUNDS_FOR_DATA))
        super().__init__(**kwargs)
        self.actor = actor
        self.initial_log_std = initial_log_std
        self.action_units = action_units

    @classmethod
    def default_networks(
        cls, build: NetworkBuilder, **settings: Any
    ) -> tuple[keras.Model]:
        """Makes a policy network."""
        return (build.actor(build.head.parameter_sizes[0], build.seed),)

    def given_networks(self) -> dict[str, keras.Model]:
        """Returns the network, keyed by constructor argument."""
        return {"actor": self.actor}

    def build_networks(self) -> None:
        """Checks the network against the spaces and makes all variables."""
        self.build_actor(*self.policy.head.parameter_sizes)

    def objectives(self) -> dict[str, Objective]:
        """Returns the only loss, that of the policy."""
        own = self.policy_variables
        return {"policy": Objective(self.actor_terms, [self.actor], own)}

    def actor_terms(self, batch: Batch) -> Terms:
        """Computes the loss of the policy on a minibatch.

        Args:
            batch: dict of `[B, ...]`: `observation`, `action` and `weight`.

        Returns:
            dict: `loss`, a scalar, which is minimised; other scalars for the
            logs.
        """
        policy = self.distribution(batch["observation"], training=True)
        log_prob = policy.log_prob(batch["action"])
        return {
            "loss": -ops.mean(batch["weight"] * log_prob),
            "log_prob": ops.mean(log_prob),
            "entropy": ops.mean(policy.entropy()),
        }
