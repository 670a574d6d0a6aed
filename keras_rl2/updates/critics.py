"""Critics: one or several Q-networks of an agent."""

from collections.abc import Sequence
from typing import Any
from typing import TypeAlias
from typing import cast

import keras
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.inputs import one_value_each
from keras_rl2.networks.inputs import run_network
from keras_rl2.updates.updater import Terms

GivenCritics: TypeAlias = keras.Model | Sequence[keras.Model]
"""One critic, or all that there are."""


def action_values(
    critics: Sequence[keras.Model],
    encoded: Any,
    action: Tensor,
    training: bool = False,
) -> list[Tensor]:
    """Returns each critic's Q-values of actions within the unit box.

    Args:
        critics: Sequence of `keras.Model`.
        encoded: tree of `[B, ...]`. Observations as networks take them.
        action: `[B, A]`.
        training: bool. Passed on to the critics. Defaults to `False`.

    Returns:
        list of `[B]` float32.
    """
    return [
        one_value_each(run_network(critic, encoded, training, action=action))
        for critic in critics
    ]


def all_values(
    critics: Sequence[keras.Model], encoded: Any, training: bool = False
) -> list[Tensor]:
    """Returns each critic's Q-values `[B, n]` of all Discrete actions."""
    return [
        ops.cast(run_network(critic, encoded, training), "float32")
        for critic in critics
    ]


def values_of_taken(
    critics: Sequence[keras.Model],
    encoded: Any,
    action: Tensor,
    discrete: bool,
    training: bool = False,
) -> list[Tensor]:
    """Returns each critic's Q-values `[B]` of given actions, of either kind."""
    if not discrete:
        return action_values(critics, encoded, action, training)
    # [B, n] -> [B]
    index = ops.cast(action, "int32")[:, None]
    return [
        ops.take_along_axis(values, index, axis=1)[:, 0]
        for values in all_values(critics, encoded, training)
    ]


def td_terms(values: Sequence[Tensor], target: Tensor, weight: Tensor) -> Terms:
    """Compares the critics' Q-values with their common target.

    Args:
        values: Sequence of `[B]`. Q-values of each critic.
        target: `[B]`. Counts as a constant.
        weight: `[B]`. Weight of each transition.

    Returns:
        dict: `loss`, half the mean squared error, summed over critics;
        `td_error` `[B]`, the mean of the critics'; `q_value`, the mean of the
        first one's values.
    """
    errors = [ops.stop_gradient(target) - value for value in values]
    return {
        "loss": cast(
            Tensor, sum(ops.mean(weight * 0.5 * ops.square(e)) for e in errors)
        ),
        "td_error": ops.stop_gradient(cast(Tensor, sum(errors)) / len(errors)),
        "q_value": ops.mean(values[0]),
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
