"""Asynchronous proximal policy optimisation."""

from typing import Any
from typing import Unpack

import keras
from keras import ops

from keras_rl2 import returns
from keras_rl2.agents.ppo import PPO
from keras_rl2.agents.ppo import PPOArguments
from keras_rl2.basics import arguments
from keras_rl2.basics.shapes import Tensor


@keras.saving.register_keras_serializable(package="keras_rl2")
class APPO(PPO):
    """Proximal policy optimisation with workers that collect asynchronously.

    During the updates of one round, workers collect the next one with the
    weights that they have. Their policy μ is thus older than the policy π that
    is trained, so V-trace corrects the targets, with π as it is when the round
    begins:

        w = π(a|s) / μ(a|s)
        δ = min(clip_rho, w) (r + γ V(s') - V(s))
        R = V(s) + Σ (γ λ)ᵏ Π min(clip_c, w) δ
        A = r + γ ((1 - λ) V(s') + λ R') - V(s)

    Then follow PPO's updates. Their ratio is relative to μ, so the loss does
    not reward π for moving by more than `clip_ratio` from the policy that
    acted, however old it is. (With the ratio of Luo et al., relative to a
    target network, here π at the beginning of the round, it moves as far again
    in each round; on CartPole one of five seeds fell back from its best.)
    Without lag, w is 1, and with bounds of at least 1, R, A and each gradient
    are those of PPO.

    The lag of workers depends on the order of events, not on their speed: runs
    with workers are reproducible. Without workers there is no lag.

    Args:
        max_lag: int or None. Maximum number of updates between acting and
            learning. As many whole rounds are collected ahead as it allows,
            none with 0. None for the updates of one round. Defaults to `None`.
        clip_rho: float. Upper bound of w in the TD errors. Defaults to `1.0`.
        clip_c: float. Upper bound of w in the trace. Defaults to `1.0`.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", num_envs=4, horizon=32,
    ...                              passes=4, batch_size=128,
    ...                              workers=rl.LocalWorkers(2), seed=0)
    >>> agent = rl.APPO.for_env(rollouts.env, seed=0)
    >>> history = agent.fit(rollouts, epochs=3, verbose=0)
    >>> rollouts.updates_per_round, history.history["lag"]
    (4, [0.0, 4.0, 4.0])
    >>> rollouts.close()

    Reference:
        - [Espeholt et al., 2018](https://arxiv.org/abs/1802.01561).
        - [Luo et al., 2020](https://arxiv.org/abs/1912.00167).
    """

    def __init__(
        self,
        actor: keras.Model,
        critic: keras.Model | None = None,
        *,
        max_lag: int | None = None,
        clip_rho: float = 1.0,
        clip_c: float = 1.0,
        **kwargs: Unpack[PPOArguments],
    ) -> None:
        arguments.check_at_least(0, **arguments.present(max_lag=max_lag))
        arguments.check_in_range(
            clip_rho=(clip_rho, 0.0, 1e6), clip_c=(clip_c, 0.0, 1e6)
        )
        super().__init__(actor, critic, **kwargs)
        self.max_lag = max_lag
        self.clip_rho = clip_rho
        self.clip_c = clip_c

    def targets(
        self,
        arrays: dict[str, Any],
        log_prob: Tensor | None,
        values: Tensor,
        next_values: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Returns advantages and targets of V-trace; see `OnPolicyAgent`."""
        log_ratios = ops.zeros_like(values)
        if log_prob is not None:
            log_ratios = log_prob - arrays["log_prob"]
        targets, advantages = returns.vtrace(
            log_ratios,
            arrays["reward"],
            self.discounts(arrays),
            values,
            next_values,
            lambda_=self.gae_lambda,
            clip_rho=self.clip_rho,
            clip_c=self.clip_c,
            clip_pg_rho=None,
            truncated=arrays["truncated"],
        )
        return advantages, targets
