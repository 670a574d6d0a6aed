"""Critics: one or several Q-networks of an agent."""

from collections.abc import Sequence
from typing import TypeAlias
from typing import cast

import keras
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.losses.value_distributions import ValueDistribution
from keras_rl2.updates.updater import Terms

GivenCritics: TypeAlias = keras.Model | Sequence[keras.Model]
"""One critic, or all that there are."""


def td_terms(
    values: ValueDistribution,
    outputs: Sequence[Tensor],
    target: Tensor,
    weight: Tensor,
) -> Terms:
    """Compares the critics' outputs with their common target.

    Args:
        values: `ValueDistribution`. The interpretation of the outputs.
        outputs: Sequence of `[B, N]`. Outputs of each critic.
        target: `[B]` or `[B, M]`. Of `ValueDistribution.target`. Counts as a
            constant.
        weight: `[B]`. Weight of each transition.

    Returns:
        dict: `loss`, the mean of each critic's loss, summed over critics;
        `td_error` `[B]`, the mean of the critics'; `q_value`, the mean of the
        first one's values.
    """
    found = [values.compare(each, target) for each in outputs]
    losses, errors = zip(*found, strict=True)
    return {
        "loss": cast(Tensor, sum(ops.mean(weight * e) for e in losses)),
        "td_error": cast(Tensor, sum(errors)) / len(errors),
        "q_value": ops.mean(values.mean(outputs[0])),
    }


def check_apart(networks: Sequence[keras.Model]) -> None:
    """Raises a `ValueError` if networks of separate losses share variables."""
    owners: dict[int, str] = {}
    for network in networks:
        for variable in network.trainable_variables:
            if id(variable) in owners:
                raise ValueError(
                    "Expected actor and critic without common variables. "
                    f"Received: {owners[id(variable)]!r} and "
                    f"{network.name!r} both own {variable.path!r}"
                )
            owners[id(variable)] = network.name
