"""Steps of sequences, in place of a minibatch of observations.

M are sequences, S their steps, and L those steps of which outputs are needed.
"""

import dataclasses
import itertools
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Self

import keras
import tensorflow as tf
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves


@dataclasses.dataclass(frozen=True, eq=False)
class Sequences:
    """Observations of M sequences, which stand for `[B, ...]`, B = M * L.

    `run_network` runs a recurrent network through the sequences, and returns
    its outputs for the B steps. So a loss of single steps is also one of
    sequences.

    Attributes:
        observation: tree of `[M, S, ...]`.
        begins: `[M, S]`. 1 where a step is the first of an episode.
        states: Mapping from each network to its state before the first step, a
            sequence of `[M, ...]`.
        burn_in: dict of `observation` and `begins` of steps before, after
            which the state is that of the present weights; or None.
        places: `[M, L]` int32. Steps of which outputs are needed; None for all.
    """

    observation: Tree[Tensor]
    begins: Tensor
    states: Mapping[keras.Model, Sequence[Tensor]]
    burn_in: Mapping[str, Any] | None = None
    places: Tensor | None = None

    def encoded(self, encode: Callable[[Any], Any]) -> Self:
        """Returns the same with observations as inputs of networks."""

        def each(part: Mapping[str, Any]) -> dict[str, Any]:
            begins, rows = part["begins"], map_leaves(flat, part["observation"])
            sequences = map_leaves(sequences_like(begins), encode(rows))
            return {"observation": sequences, "begins": begins}

        burn_in = self.burn_in and each(self.burn_in)
        return dataclasses.replace(self, **each(vars(self)), burn_in=burn_in)

    def rows(self, array: Tensor) -> Tensor:
        """Returns an array `[M, S, ...]` at the steps, `[B, ...]`."""
        if self.places is not None:
            array = tf.gather(array, self.places, axis=1, batch_dims=1)
        return flat(array)

    def __getitem__(self, key: str) -> Tensor:
        """Returns an array of Dict observations at the steps, `[B, ...]`."""
        observation: Any = self.observation
        return self.rows(observation[key])


def states_by_network(
    networks: Iterable[keras.Model], state: Sequence[Tensor]
) -> dict[keras.Model, Sequence[Tensor]]:
    """Cuts the states of recurrent networks, as far as there are any."""
    rest = iter(state)
    return {
        each: [*itertools.islice(rest, len(each.initial_state(1)))]
        for each in networks
    }


def flat(array: Tensor) -> Tensor:
    """Lays sequences end to end: `[M, S, ...]` -> `[M * S, ...]`."""
    return ops.reshape(array, (-1, *array.shape[2:]))


def sequences_like(begins: Tensor) -> Callable[[Tensor], Tensor]:
    """Returns the inverse of `flat`.

    Args:
        begins: `[B, T]`. Has the sizes of the sequences.

    Returns:
        Function from `[B * T, ...]` to `[B, T, ...]`.

    Example:

    >>> import numpy as np
    >>> rewards = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> flat(rewards).numpy().tolist()
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    >>> sequences_like(rewards)(flat(rewards)).numpy().tolist()
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    """
    batch, steps = ops.shape(begins)[:2]
    return lambda array: ops.reshape(array, (batch, steps, *array.shape[1:]))


def of_one_step(array: Tensor) -> Tensor:
    """Makes sequences of single steps: `[B, ...]` -> `[B, 1, ...]`."""
    return array[:, None]
