"""Networks run by agents: of several replicas, each runs its share."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_rl2.distribute import replicas
from keras_rl2.networks import network_inputs
from keras_rl2.networks.network_inputs import Memory


def run_network(
    network: keras.Model,
    encoded: Any,
    training: bool = False,
    action: Any = None,
) -> Any:
    """Runs a network on observations; see `network_inputs.run_network`.

    Args:
        network: `keras.Model`. Of observations, and of actions if there are.
        encoded: tree of `[B, ...]`. Observations, as the encoder gives them.
        training: bool. Passed on to the network. Defaults to `False`.
        action: `[B, A]` or None. What a critic values. Defaults to `None`.

    Returns:
        What the network gives.
    """

    def run(encoded: Any, action: Any) -> Any:
        return network_inputs.run_network(network, encoded, training, action)

    return replicas.by_rows(run, encoded, action)


def run_memory(
    network: Memory,
    encoded: Any,
    begins: Any,
    state: Sequence[Any],
    training: bool = False,
) -> tuple[Any, Sequence[Any]]:
    """Runs a network that remembers; see `network_inputs.run_memory`.

    Args:
        network: `Memory`.
        encoded: tree of `[B, T, ...]`. Observations, as the encoder gives
            them.
        begins: `[B, T]`. 1 where a step is the first of an episode.
        state: Sequence of `[B, ...]`. Before the first step.
        training: bool. Passed on to the network. Defaults to `False`.

    Returns:
        Outputs `[B, T, ...]`, and the state after the last step.
    """

    def run(encoded: Any, begins: Any, state: Any) -> Any:
        return network_inputs.run_memory(
            network, encoded, begins, state, training
        )

    found: tuple[Any, Sequence[Any]]
    found = replicas.by_rows(run, encoded, begins, tuple(state))
    return found
