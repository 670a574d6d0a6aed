"""Recurrent networks: an encoder, any RNN cell of Keras, and a head."""

import inspect
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_rl2.basics import seeds
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.building import Initialization
from keras_rl2.networks.building import dense
from keras_rl2.networks.building import hidden_layer
from keras_rl2.networks.building import normalized_input
from keras_rl2.networks.building import with_seeds
from keras_rl2.networks.inputs import inputs_for
from keras_rl2.networks.sequences import flat
from keras_rl2.networks.sequences import of_one_step
from keras_rl2.networks.sequences import sequences_like
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

_ARGUMENTS = ("encoder", "cell", "head", "name")


@keras.saving.register_keras_serializable(package="keras_rl2")
class ResettingCell(keras.layers.Layer):
    """An RNN cell that resets its state where an episode begins.

    Its input is that of the cell and one further number, 1 where a new episode
    begins: the state is zero there before the step. One sequence may thus
    contain the end of an episode and the beginning of the next.
    """

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cell = cell
        self.state_size = cell.state_size
        self.output_size = cell.output_size
        parameters = inspect.signature(cell.call).parameters
        self._has_training = "training" in parameters

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Builds the cell for the input without the last number, `begins`."""
        *batch, width = input_shape
        if not self.cell.built:
            self.cell.build((*batch, int(width or 1) - 1))

    def call(
        self, inputs: Tensor, states: Sequence[Tensor], training: bool = False
    ) -> tuple[Tensor, Any]:
        """Runs one step, resetting the state where `begins` is 1."""
        goes_on = 1.0 - inputs[:, -1:]
        states = keras.tree.map_structure(
            lambda state: state * ops.cast(goes_on, state.dtype), states
        )
        arguments = {"training": training} if self._has_training else {}
        return self.cell(inputs[:, :-1], states, **arguments)

    def get_initial_state(self, batch_size: int | None = None) -> Any:
        """Returns zeros."""
        return self.cell.get_initial_state(batch_size=batch_size)


@keras.saving.register_keras_serializable(package="keras_rl2")
class MemoryNetwork(keras.Model):
    """A recurrent network, which keeps a state during an episode.

    Any `keras.Model` with `initial_state` and the same call can take its
    place: `network(observation, begins, state)` returns outputs and the state
    after the last step, and returns the same for a sequence as for its single
    steps in turn.

    Args:
        encoder: `keras.Model` from observations `[B, ...]` to `[B, F]`; for a
            Dict or Tuple, the names of its inputs select the arrays.
        cell: RNN cell of Keras with F inputs, and states that begin as zeros;
            `keras.layers.StackedRNNCells` for several cells.
        head: `keras.Model` from `[B, U]`, the cell's outputs, to outputs; of a
            critic of actions, from a list of `[B, U]` and `[B, A]`, so that
            other actions can be valued after the same past.
        name: str. Name of the model. Defaults to `"memory_network"`.

    Example:

    >>> from keras_rl2.networks import mlp
    >>> encoder, head = mlp((3,), 8, seed=0), mlp((16,), 2, seed=1)
    >>> network = MemoryNetwork(encoder, keras.layers.LSTMCell(16), head)
    >>> state = network.initial_state(5)
    >>> outputs, state = network(
    ...     np.zeros((5, 7, 3)), np.zeros((5, 7)), state)
    >>> outputs.shape, [each.shape for each in state]
    (TensorShape([5, 7, 2]), [TensorShape([5, 16]), TensorShape([5, 16])])
    """

    def __init__(
        self,
        encoder: keras.Model,
        cell: Any,
        head: keras.Model,
        name: str = "memory_network",
    ) -> None:
        super().__init__(name=name, autocast=False)
        self.encoder = encoder
        self.cell = cell
        self.head = head
        self.rnn = keras.layers.RNN(
            ResettingCell(cell), return_sequences=True, return_state=True
        )
        self.rnn.build((None, None, int(encoder.output_shape[-1]) + 1))
        self.built = True

    def initial_state(self, batch_size: int) -> tuple[np.ndarray, ...]:
        """Returns the state at the beginning of an episode.

        Args:
            batch_size: int. Episodes, B.

        Returns:
            tuple of `[B, ...]` float32.
        """
        sizes = keras.tree.flatten(self.cell.state_size)
        return tuple(
            np.zeros((batch_size, int(size)), np.float32) for size in sizes
        )

    def call(
        self,
        observation: Tree[Tensor],
        begins: Tensor,
        state: Sequence[Tensor],
        training: bool = False,
        action: Tensor | None = None,
    ) -> tuple[Any, tuple[Tensor, ...]]:
        """Runs through sequences.

        Args:
            observation: tree of `[B, T, ...]`. Inputs of the encoder.
            begins: `[B, T]`. 1 where a step is the first of an episode.
            state: Sequence of `[B, ...]`. Before the first step.
            training: bool. Passed on. Defaults to `False`.
            action: `[B, T, A]` or None. Actions, for the head of a critic of
                them. Defaults to `None`.

        Returns:
            Outputs of the head, `[B, T, ...]` each, and the state after the
            last step, a tuple like `state`.
        """
        features, after = self.remember(observation, begins, state, training)
        rows = flat(features)
        if action is not None:
            rows = [rows, flat(action)]
        ends = self.head(rows, training=training)
        return keras.tree.map_structure(sequences_like(begins), ends), after

    def remember(
        self,
        observation: Tree[Tensor],
        begins: Tensor,
        state: Sequence[Tensor],
        training: bool = False,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Runs encoder and cell through sequences; see `call`.

        Returns:
            Outputs of the cell, `[B, T, U]`, and the state after the last step.
        """
        sequences = sequences_like(begins)
        features = self.encoder(
            inputs_for(self.encoder, map_leaves(flat, observation)),
            training=training,
        )
        features = ops.cast(sequences(features), "float32")
        begins = ops.cast(begins, "float32")[..., None]
        features = ops.concatenate([features, begins], axis=-1)  # [B, T, F + 1]
        sizes = self.cell.state_size
        # Keras' `RNN` layer takes the states in this structure.
        sizes = [sizes] if isinstance(sizes, int) else [*sizes]
        states = keras.tree.pack_sequence_as(sizes, list(state))
        if features.shape[1] == 1 and not training:
            # Acting runs without a loop, as LiteRT and ONNX need it.
            output, last = self.rnn.cell(features[:, 0], states)
            outputs = of_one_step(output)
        else:
            outputs, *last = self.rnn(
                features, initial_state=states, training=training
            )
            for cell in getattr(self.cell, "cells", [self.cell]):
                # Keras' `RNN` does so for its own cell only.
                if hasattr(cell, "reset_dropout_mask"):
                    cell.reset_dropout_mask()
                    cell.reset_recurrent_dropout_mask()
        return outputs, tuple(keras.tree.flatten(last))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        arguments = {name: getattr(self, name) for name in _ARGUMENTS}
        return dict(keras.saving.serialize_keras_object(arguments))

    @classmethod
    def from_config(
        cls,
        config: dict[str, Any],
        custom_objects: Mapping[str, Any] | None = None,
    ) -> "MemoryNetwork":
        """Makes a network from `get_config`."""
        read = keras.saving.deserialize_keras_object
        return cls(**read(config, custom_objects))


with_memory = MemoryNetwork
"""Makes a recurrent network of three parts; see `MemoryNetwork`."""


def seeded_cell(cell: object, seed: int | None) -> Any:
    """Returns a new cell like another one, with seeded initial weights."""
    try:
        config = keras.saving.serialize_keras_object(cell)
    except NotImplementedError:
        # Keras' own `get_config` raises it for a custom class with arguments
        # that cannot be written down.
        return cell
    drawn = iter(seeds.several(seed, 64))
    return keras.saving.deserialize_keras_object(
        with_seeds(config, lambda each: next(drawn) if each is None else each),
        custom_objects={type(cell).__name__: type(cell)},
    )


def outputs_of(
    width: int,
    units: Sequence[int],
    *,
    action_size: int = 0,
    hidden: Sequence[int] = (),
    activation: str = "tanh",
    normalization: str = "none",
    initialization: str = "orthogonal",
    seed: int | None = None,
    name: str = "head",
) -> keras.Model:
    """Builds the head of a recurrent network, with layers per output.

    Returns:
        `keras.Model` from `[B, U]` to `[B, units]`, or to a list of them; with
        an `action_size` from a list of `[B, U]` and `[B, A]`.

    Example:

    >>> outputs_of(16, (2, 1), hidden=(8,), seed=0).output_shape
    [(None, 2), (None, 1)]
    """
    start = Initialization(initialization, seed)
    inputs = memory = keras.Input((width,), name="memory")
    policy_first = initialization == "orthogonal" and len(units) > 1
    remembered = normalized_input(memory, normalization)
    if action_size:
        action = keras.Input((action_size,), name="action")
        inputs = [memory, action]
        remembered = keras.layers.Concatenate(name="both")([remembered, action])
    outputs = []
    for index, size in enumerate(units):
        x = remembered
        for depth, each in enumerate(hidden):
            layer = f"hidden_{index}_{depth}"
            x = hidden_layer(x, each, start, layer, activation, normalization)
        gain = 0.01 if policy_first and index == 0 else 1.0
        outputs.append(dense(x, size, start, f"output_{index}", gain=gain))
    return keras.Model(
        inputs, outputs if len(outputs) > 1 else outputs[0], name=name
    )
