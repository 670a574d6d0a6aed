"""Checks that the sizes of a replay fit each other."""

from collections.abc import Callable
from typing import SupportsFloat

from keras_rl2.basics.arguments import check_in_range


def check_replay_sizes(
    num_envs: int,
    *,
    capacity: int,
    batch_size: int,
    steps_per_round: int,
    warm_up: int,
    n_step: int,
    burn_in: int,
) -> None:
    """Checks that whole minibatches can be drawn from a dataset.

    Args:
        num_envs: int. Environments.
        capacity: int. Transitions that are held.
        batch_size: int. Transitions of one minibatch; 0 if unknown.
        steps_per_round: int. Environment steps of one round.
        warm_up: int. Steps before the first round.
        n_step: int. Rewards of one transition.
        burn_in: int. Steps before the transitions of a sequence.

    Raises:
        ValueError: If the numbers do not fit each other.
    """
    if steps_per_round % num_envs:
        raise ValueError(
            "Expected `steps_per_round` to be a multiple of the number of "
            f"environments, {num_envs}. "
            f"Received: steps_per_round={steps_per_round}"
        )
    needed = max(n_step * num_envs, batch_size)
    if capacity < needed:
        raise ValueError(
            f"Expected `capacity` to be at least {needed}, a minibatch and a "
            f"window of n_step={n_step} in each of {num_envs} environments. "
            f"Received: capacity={capacity}"
        )
    if warm_up + steps_per_round < n_step * num_envs:
        raise ValueError(
            "Expected `warm_up` and a round to fill a window of "
            f"n_step={n_step} in each of {num_envs} environments. Received: "
            f"warm_up={warm_up}, steps_per_round={steps_per_round}"
        )


def check_priorities(
    alpha: float, beta: float | Callable[[int], SupportsFloat]
) -> None:
    """Checks the exponents of priorities.

    Args:
        alpha: float. Exponent of a priority.
        beta: float or Callable. Exponent of the importance weight, from 0, no
            weights, to 1, full correction of the bias.

    Raises:
        ValueError: If an exponent is not a number, or out of bounds.
    """
    check_in_range(alpha=(alpha, 0.0, 1e6))
    if not callable(beta):
        check_in_range(beta=(beta, 0.0, 1.0))


def check_sequences_fit(
    num_envs: int, *, steps: int, warm_up: int, steps_per_round: int
) -> None:
    """Checks that a warm-up is long enough for a single sequence.

    Args:
        num_envs: int. Environments.
        steps: int. Steps of a sequence, including burn-in and bootstrap.
        warm_up: int. Steps before the first round.
        steps_per_round: int. Environment steps of one round.

    Raises:
        ValueError: If the first round could not draw a sequence.
    """
    if warm_up + steps_per_round < steps * num_envs:
        raise ValueError(
            f"Expected `warm_up` and a round to fill a sequence of {steps} "
            f"steps in each of {num_envs} environments. Received: "
            f"warm_up={warm_up}, steps_per_round={steps_per_round}"
        )
