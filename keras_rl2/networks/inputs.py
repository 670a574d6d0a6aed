"""How networks are run: their inputs, sequences, and shares of replicas.

One array is given as it is. Of a Dict or Tuple, a functional network says by
the names of its inputs what it takes; any other gets the tree.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Protocol
from typing import runtime_checkable

import keras
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distribute import replicas
from keras_rl2.spaces.supported import ACTION
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import input_name
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves


@runtime_checkable
class Memory(Protocol):
    """A network that remembers; `keras_rl2.networks.MemoryNetwork` is one.

    It is called with observations `[B, T, ...]`, `begins` `[B, T]` (1 where a
    step is the first of an episode: the state before it does not count) and a
    state, and gives outputs `[B, T, ...]` and the state after the last step;
    the same for a sequence as for its steps one after the other.
    """

    def initial_state(self, batch_size: int) -> Sequence[Any]:
        """Returns the state at the beginning of an episode.

        Args:
            batch_size: int. Episodes, B.

        Returns:
            Sequence of `[B, ...]`.
        """

    def __call__(
        self, observation: Any, begins: Any, state: Any, training: bool = False
    ) -> tuple[Any, Sequence[Any]]:
        """Runs through sequences."""


def run_network(
    network: keras.Model,
    encoded: Any,
    training: bool = False,
    action: Any = None,
) -> Any:
    """Runs a network on observations; of several replicas, each its share.

    Args:
        network: `keras.Model`. Of observations, and of actions if there are.
        encoded: tree of `[B, ...]`. Observations, as the encoder gives them.
        training: bool. Passed on to the network. Defaults to `False`.
        action: `[B, A]` or None. What a critic values. Defaults to `None`.

    Returns:
        What the network gives.
    """

    def run(encoded: Any, action: Any) -> Any:
        inputs = inputs_for(network, encoded, action=action)
        return network(inputs, training=training)

    return replicas.by_rows(run, encoded, action)


def run_memory(
    network: Memory,
    encoded: Any,
    begins: Any,
    state: Sequence[Any],
    training: bool = False,
) -> tuple[Any, Sequence[Any]]:
    """Runs a recurrent network through sequences; each replica its share.

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
        return network(encoded, begins, tuple(state), training=training)

    found: tuple[Any, Sequence[Any]]
    found = replicas.by_rows(run, encoded, begins, tuple(state))
    return found


def inputs_for(network: keras.Model, encoded: Any, action: Any = None) -> Any:
    """Returns what a network is called with.

    Args:
        network: `keras.Model`.
        encoded: tree of tensors, symbolic ones perhaps. Observations, as the
            encoder gives them.
        action: tensor or None. Actions, for a critic of them. Defaults to
            `None`.

    Returns:
        Tensors in the form that the network takes. One array stays what it
        is, beside actions it is `[observation, action]`. Of a tree, a
        functional network gets those arrays that its inputs are named after,
        by path (`"image"`, `"arm.angle"`, `"0"` in a Tuple; and `"action"`);
        all others get the tree without the action mask, or its only array.

    Raises:
        ValueError: If an input has a name that the observation has not.
    """
    if is_leaf(encoded):
        return encoded if action is None else [encoded, action]
    given = dict(named_leaves(encoded))
    if action is not None:
        given[ACTION] = action
    form = _form_of_inputs(network)
    if form is not None:
        return _chosen(network, form, given)
    seen = _without_mask(encoded)
    return seen if action is None else [seen, action]


def _form_of_inputs(network: keras.Model) -> Any:
    """Returns the symbolic inputs of a functional network, or None."""
    # Subclassed ones have an `input` as soon as they were called, of names
    # that nobody has chosen; but no `inputs`.
    inputs = getattr(network, "inputs", None)
    if inputs is None:
        return None
    if isinstance(network, keras.Sequential):
        return inputs[0]
    return network.input


def _chosen(network: keras.Model, form: Any, given: dict[str, Any]) -> Any:
    """Returns what the inputs of a functional network are named after."""
    if isinstance(form, Mapping):
        names = {key: key for key in form}
    else:
        tensors = form if isinstance(form, (list, tuple)) else [form]
        names = dict(enumerate(tensor.name for tensor in tensors))
    usable = {key: each for key, each in given.items() if key != ACTION_MASK}
    # By names of inputs, where those may not be what keys are.
    given = {**{input_name(key): given[key] for key in given}, **given}
    missing = [name for name in names.values() if name not in given]
    if missing and len(names) == len(usable) == 1:
        # A Sequential, say, whose input has no name of anybody's choice.
        return next(iter(usable.values()))
    if missing:
        raise ValueError(
            f"Expected the inputs of {network.name!r} to be named after the "
            f"observation, among {sorted(given)}. Received: "
            f"{sorted(names.values())}"
        )
    chosen = {key: given[name] for key, name in names.items()}
    if isinstance(form, Mapping):
        return chosen
    return [*chosen.values()] if len(chosen) > 1 else chosen[0]


def _without_mask(encoded: Any) -> Any:
    """Returns a tree without the action mask, or its only array."""
    if isinstance(encoded, Mapping) and ACTION_MASK in encoded:
        encoded = {k: v for k, v in encoded.items() if k != ACTION_MASK}
    only = [*named_leaves(encoded)]
    return only[0][1] if len(only) == 1 else encoded


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


def flat(array: Tensor) -> Tensor:
    """Lays sequences end to end: `[B, T, ...]` -> `[B * T, ...]`."""
    return ops.reshape(array, (-1, *array.shape[2:]))


def sequences_like(begins: Tensor) -> Callable[[Tensor], Tensor]:
    """Returns what undoes `flat`.

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

    def sequences(array: Tensor) -> Tensor:
        return ops.reshape(array, (batch, steps, *array.shape[1:]))

    return sequences


def of_one_step(array: Tensor) -> Tensor:
    """Makes sequences of single steps: `[B, ...]` -> `[B, 1, ...]`."""
    return array[:, None]
