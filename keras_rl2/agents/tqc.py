"""Truncated quantile critics."""

from typing import Any
from typing import Unpack
from typing import cast

import gymnasium
import keras
from keras import ops

from keras_rl2.agents.sac import SAC
from keras_rl2.agents.sac import SACArguments
from keras_rl2.basics.arguments import check_at_least
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.basics.shapes import Tensor
from keras_rl2.losses.value_distributions import value_distribution
from keras_rl2.networks.builder import NetworkBuilder
from keras_rl2.updates.critics import GivenCritics
from keras_rl2.updates.updater import Batch


@keras.saving.register_keras_serializable(package="keras_rl2")
class TQC(SAC):
    """Truncated quantile critics: soft actor-critic of distributions, for Box.

    Each of K critics returns N quantiles θ of the return, at the fractions
    (i + 1/2) / N. The quantiles of all target critics for an action a' ~ π(s')
    are sorted together, and the largest of them are dropped, d for each critic.
    With those that are left, z_1 <= ... <= z_M, M = K (N - d), the targets and
    losses are

        y_j = r + discount (z_j - α log π(a'|s'))
        L_Q = Σ_k mean(quantile_huber(θ_k(s, a), y))
        L_π = mean(α log π(a|s) - 1/(K N) Σ_k Σ_i θ_ki(s, a)),   a ~ π(s)

    Without the largest quantiles, values are overestimated less. The loss of
    the temperature α is that of `SAC`.

    Args:
        actor: `keras.Model` from observations to `[B, 2A]`, means and log
            standard deviations of a Box policy before tanh.
        critic: `keras.Model` from a list of observations and actions (within
            -1 ... 1) to quantiles `[B, atoms]`. Or a list of `num_critics`
            such models; for a single one, the agent makes the others, of the
            same architecture, with their own weights. A single model may also
            return the quantiles of all critics, side by side.
        num_critics: int. K, number of critics; 5 in the publication. Defaults
            to `2`.
        atoms: int. N, quantiles of each critic. Defaults to `25`.
        top_quantiles_to_drop: int. d, quantiles that targets drop for each
            critic. Defaults to `2`.

    Example:

    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("Pendulum-v1", batch_size=32, warm_up=64,
    ...                           updates_per_round=4, rounds_per_epoch=1,
    ...                           seed=0)
    >>> agent = rl.TQC.for_env("Pendulum-v1", hidden=(32,), seed=0)
    >>> history = agent.fit(replay, epochs=2, verbose=0)
    >>> sorted(history.history)[:4]
    ['actor_loss', 'critic_loss', 'entropy', 'env_steps']

    Reference:
        - [Kuznetsov et al., 2020](https://arxiv.org/abs/2005.04269).
    """

    action_kinds = (gymnasium.spaces.Box,)

    def __init__(
        self,
        actor: keras.Model,
        critic: GivenCritics,
        *,
        atoms: int = 25,
        top_quantiles_to_drop: int = 2,
        **kwargs: Unpack[SACArguments],
    ) -> None:
        values = value_distribution("quantile", atoms, (0, 1))
        check_at_least(0, top_quantiles_to_drop=top_quantiles_to_drop)
        check_in_range(
            top_quantiles_to_drop=(top_quantiles_to_drop, 0, atoms - 1)
        )
        super().__init__(actor, critic, **kwargs)
        self.value_distribution = values
        self.atoms = atoms
        self.top_quantiles_to_drop = top_quantiles_to_drop

    @classmethod
    def default_networks(
        cls, build: NetworkBuilder, **settings: Any
    ) -> tuple[Any, ...]:
        """Makes an actor and critics."""
        return super().default_networks(
            build, distributional="quantile", **settings
        )

    def next_value(self, batch: Batch) -> Tensor:
        """Returns the soft quantiles of the next states, `[B, M]` float32."""
        following = batch["next_observation"]
        action, log_prob = self.sample_with_log_prob(following, 0)
        quantiles = self.critic_outputs(
            self.target_critics, self.policy.encode(following), action
        )
        together = ops.sort(ops.concatenate(quantiles, axis=-1), axis=-1)
        kept = self.num_critics * (self.atoms - self.top_quantiles_to_drop)
        return (
            together[:, :kept] - (self.current_temperature * log_prob)[:, None]
        )

    def judged(self, values: list[Tensor], training: bool) -> list[Tensor]:
        """Returns the mean of the critics, which the policy maximises."""
        del training
        return [cast(Tensor, sum(values)) / len(values)]
