"""REINFORCE: the Monte-Carlo policy gradient."""

from typing import Any

import gymnasium
import keras

from keras_rl2.agents.on_policy_agent import OnPolicyAgent
from keras_rl2.data import OwnRollout


@keras.saving.register_keras_serializable(package="keras_rl2")
class REINFORCE(OnPolicyAgent):
    """Monte-Carlo policy gradient, with or without a learned baseline.

        L = mean(-(G - V) log pi(a)) + value_coefficient * mean((V - G)^2)
            - entropy_coefficient * mean(H)

    where G is the discounted return from a step to the end of its episode,
    and V the baseline, 0 without a critic. Each round plays one whole episode
    in every environment; `horizon` is its longest length. Where an episode is
    cut off, by a time limit or the horizon, the baseline stands for the rest.

    Args:
        actor: `keras.Model` from observations to the parameters of the
            policy; or to (parameters, value).
        critic: `keras.Model` from observations to values `[B, 1]`, the
            baseline; or None. Defaults to `None`.
        **kwargs: Arguments of `OnPolicyAgent` except `gae_lambda`, which is
            1: `gamma`, `entropy_coefficient`, `value_coefficient`,
            `normalize_advantages`, `max_gradient_norm`, `initial_log_std`,
            `observation_space`, `action_space`, `seed`, `name`, `dtype`.

    Raises:
        ValueError: If a number is out of range or a network does not fit.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=500, passes=1,
    ...                              batch_size=None, num_envs=2, seed=0)
    >>> agent = rl.REINFORCE.for_env("CartPole-v1", seed=0)
    >>> history = agent.fit(rollouts, epochs=2, verbose=0)
    >>> len(history.history["policy_loss"])
    2

    Reference:
        - [Williams, 1992](https://doi.org/10.1007/BF00992696).
    """

    statistics_names = (
        "loss",
        "policy_loss",
        "value_loss",
        "entropy",
        "gradient_norm",
    )
    whole_episodes = True
    needs_value = False
    arguments_not_taken = frozenset({"gae_lambda"})

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,
        **kwargs: Any,
    ) -> None:
        self.refuse_arguments(kwargs)
        super().__init__(actor, critic, gae_lambda=1.0, **kwargs)

    @classmethod
    def own_rollout(cls, observation_space: gymnasium.Space[Any]) -> OwnRollout:
        """Returns the rollouts that it learns from by default."""
        # There are as many steps as the episodes have.
        return OwnRollout(
            steps=1, passes=1, batch_size=None, rounds_per_epoch=10
        )

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        """Returns the optimizer that `compile("auto")` uses."""
        # A round is one update: there are few of them.
        return keras.optimizers.Adam(1e-3)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor as plain data."""
        config = super().get_config()
        del config["gae_lambda"]
        return config
