"""Between sequences of steps and single steps, in the graph."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_rl2.network_inputs import Memory
from keras_rl2.network_inputs import run_memory
from keras_rl2.shapes import Tensor
from keras_rl2.trees import map_leaves


def flat(array: Tensor) -> Tensor:
    """Lays sequences end to end: `[B, T, ...]` -> `[B * T, ...]`."""
    return ops.reshape(array, (-1, *array.shape[2:]))


def sequences_like(begins: Tensor) -> Callable[[Tensor], Tensor]:
    """Returns what undoes `flat`.

    Args:
        begins: `[B, T]`. Has the sizes of the sequences.

    Returns:
        Function from `[B * T, ...]` to `[B, T, ...]`.
    """
    batch, steps = ops.shape(begins)[:2]

    def sequences(array: Tensor) -> Tensor:
        return ops.reshape(array, (batch, steps, *array.shape[1:]))

    return sequences


def of_one_step(array: Tensor) -> Tensor:
    """Makes sequences of single steps: `[B, ...]` -> `[B, 1, ...]`."""
    return array[:, None]


def unroll(
    network: Memory,
    encode: Callable[[Any], Any],
    observation: Any,
    begins: Tensor,
    state: Sequence[Tensor],
    training: bool = False,
) -> tuple[Any, Sequence[Tensor]]:
    """Runs a network that remembers through sequences of raw observations.

    Args:
        network: `Memory`.
        encode: Callable. Makes of raw observations `[B * T, ...]` what the
            network takes.
        observation: tree of `[B, T, ...]`. Raw observations.
        begins: `[B, T]`. 1 where a step is the first of an episode.
        state: Sequence of `[B, ...]`. Before the first step.
        training: bool. Passed on to the network. Defaults to `False`.

    Returns:
        What the network gives of each step, `[B * T, ...]` as of `flat`, and
        the state after the last step.
    """
    encoded = encode(map_leaves(flat, observation))
    outputs, after = run_memory(
        network,
        map_leaves(sequences_like(begins), encoded),
        begins,
        state,
        training,
    )
    return keras.tree.map_structure(flat, outputs), after
