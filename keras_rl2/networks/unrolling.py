"""Networks that remember, run through sequences of raw observations."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras

from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.network_inputs import Memory
from keras_rl2.networks.running import run_memory
from keras_rl2.networks.sequences import flat
from keras_rl2.networks.sequences import sequences_like
from keras_rl2.spaces.trees import map_leaves


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
