"""REINFORCE: the Monte-Carlo policy gradient."""

from typing import Any
from typing import Unpack

import gymnasium
import keras

from keras_rl2.agents.on_policy_agent import OnPolicyAgent
from keras_rl2.agents.on_policy_agent import OnPolicyArguments
from keras_rl2.policies.agent_protocols import OwnRollout


@keras.saving.register_keras_serializable(package="keras_rl2")
class REINFORCE(OnPolicyAgent):
    """Monte-Carlo policy gradient, with or without a learned baseline.

        L = mean(-(G - V) log pi(a)) + value_coefficient * mean((V - G)^2)
            - entropy_coefficient * mean(H)

    where G is the discounted return from a step to the end of its episode, and
    V the baseline, 0 where no network outputs a value. Each round plays one
    whole episode in every environment; `horizon` is its maximum length. Where
    a time limit or the horizon truncates an episode, the baseline estimates
    the rest of its return.

    Args:
        critic: `keras.Model` from observations to values `[B, 1]`, the
            baseline; or None. Defaults to `None`.

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

    whole_episodes = True
    needs_value = False
    # A round is a single update, so there are few of them.
    default_adam = {"learning_rate": 1e-3}

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,
        *,
        normalize_advantages: bool = False,
        **kwargs: Unpack[OnPolicyArguments],
    ) -> None:
        super().__init__(
            actor,
            critic,
            gae_lambda=1.0,
            normalize_advantages=normalize_advantages,
            **kwargs,
        )

    @classmethod
    def own_rollout(cls, observation_space: gymnasium.Space[Any]) -> OwnRollout:
        """Returns the default settings of rollouts."""
        # The number of steps is that of the episodes.
        return OwnRollout(
            steps=1, passes=1, batch_size=None, rounds_per_epoch=10
        )
