"""Calls of networks: their inputs, sequences, and shares of replicas.

A single array is passed as it is. For a Dict or Tuple, the names of a
functional network's inputs select the arrays; any other network gets the tree.
"""

import functools
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_rl2.basics import replicas
from keras_rl2.basics.shapes import Tensor
from keras_rl2.networks.sequences import Sequences
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import input_name
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

# Smaller probabilities count as this one, whose logarithm is finite.
_SMALLEST_PROBABILITY = 1e-30

# Outputs of networks meet float32 numbers only.
_as_float32 = functools.partial(ops.cast, dtype="float32")


def has_memory(network: keras.Model) -> bool:
    """Returns whether a network is recurrent, as `MemoryNetwork`.

    It has `initial_state(batch_size)`, and is called with observations
    `[B, T, ...]`, `begins` `[B, T]` (1 where a step is the first of an episode:
    the state before it does not count) and a state. It returns outputs
    `[B, T, ...]` and the state after the last step, the same for a sequence as
    for its single steps in turn. A critic of actions has the two halves of it:
    `remember`, which returns features `[B, T, U]` and the state, and `head`, a
    model of features and actions of single steps.
    """
    return hasattr(network, "initial_state")


def run_network(
    network: keras.Model,
    encoded: Tree[Tensor],
    training: bool = False,
    **further: Tensor,
) -> Any:
    """Runs a network on observations; each replica runs its share.

    Args:
        network: `keras.Model`. Takes observations, and further inputs if any.
        encoded: tree of `[B, ...]`, or `Sequences`. Encoded observations.
        training: bool. Passed on to the network. Defaults to `False`.
        **further: `[B, ...]` each. Further inputs by name, such as `action`;
            see `inputs_for`.

    Returns:
        The outputs of the network, float32.

    Example:

    >>> import keras_rl2 as rl
    >>> agent = rl.DQN.for_env("CartPole-v1", hidden=(8,), seed=0)
    >>> encoded = agent.policy.encode(ops.zeros((3, 4)))
    >>> run_network(agent.target_network, encoded).shape
    TensorShape([3, 2])
    """
    if isinstance(encoded, Sequences):
        return _run_sequences(network, encoded, training, further)

    def run(encoded: Tree[Tensor], further: dict[str, Tensor]) -> Any:
        inputs = inputs_for(network, encoded, **further)
        outputs = network(inputs, training=training)
        return keras.tree.map_structure(_as_float32, outputs)

    return replicas.by_rows(run, encoded, further)


def one_value_each(value: Tensor) -> Tensor:
    """Turns a critic's output into one value for each sample.

    Args:
        value: `[B, 1]` or `[B]`. The output.

    Returns:
        `[B]` float32.

    Raises:
        ValueError: If there are several values for a sample.
    """
    if len(value.shape) == 2 and value.shape[-1] == 1:
        return value[:, 0]
    if len(value.shape) != 1:
        raise ValueError(
            "Expected one value for each sample, `[B]` or `[B, 1]`. "
            f"Received: shape {tuple(value.shape)}"
        )
    return value


def as_logits(probabilities: Tensor) -> Tensor:
    """Turns probabilities into logits of the same distribution.

    Args:
        probabilities: `[B, n]`. Output of a softmax.

    Returns:
        `[B, n]` float32.
    """
    return ops.log(
        ops.maximum(ops.cast(probabilities, "float32"), _SMALLEST_PROBABILITY)
    )


def run_memory(
    network: Callable[..., Any],
    observation: Tree[Tensor],
    begins: Tensor,
    state: Sequence[Any],
    training: bool = False,
) -> tuple[Any, Sequence[Any]]:
    """Runs a recurrent network through sequences; each replica its share.

    Args:
        network: `keras.Model`. Recurrent, see `has_memory`; or its `remember`.
        observation: tree of `[B, T, ...]`. Encoded observations.
        begins: `[B, T]`. 1 where a step is the first of an episode.
        state: Sequence of `[B, ...]`. Before the first step.
        training: bool. Passed on to the network. Defaults to `False`.

    Returns:
        Outputs `[B, T, ...]`, and the state after the last step.
    """

    def run(*inputs: Any) -> Any:
        outputs, after = network(*inputs, training=training)
        return keras.tree.map_structure(_as_float32, outputs), after

    found = replicas.by_rows(run, observation, begins, tuple(state))
    return found


def _run_sequences(
    network: Any,
    encoded: Sequences,
    training: bool,
    further: Mapping[str, Tensor],
) -> Any:
    """Runs a recurrent network through `Sequences`, after their burn-in."""
    state, burn_in = encoded.states[network], encoded.burn_in
    # Actions enter after the memory, so that those of a policy may be valued
    # in place of those that were taken.
    body = network.remember if further else network
    if burn_in and burn_in["begins"].shape[1]:
        _, state = run_memory(body, **burn_in, state=state)
        state = map_leaves(ops.stop_gradient, tuple(state))
    outputs, _ = run_memory(
        body, encoded.observation, encoded.begins, state, training
    )
    outputs = keras.tree.map_structure(encoded.rows, outputs)
    if not further:
        return outputs
    return replicas.by_rows(
        lambda *each: _as_float32(network.head([*each], training=training)),
        outputs,
        *further.values(),
    )


def inputs_for(
    network: keras.Model, encoded: Tree[Tensor], **further: Tensor
) -> Any:
    """Returns the inputs of a network.

    Args:
        network: `keras.Model`.
        encoded: tree of tensors, which may be symbolic. Encoded
            observations.
        **further: `[B, ...]` each. Further inputs by name: the `action` of a
            critic, or fractions, noise, skills or goals.

    Returns:
        Tensors in the form that the network takes. A single array stays as
        it is; with further inputs it becomes `[observation, *further]`, in
        the order given. From a tree, a functional network gets the arrays that
        its inputs are named after, by path (`"image"`, `"arm.angle"`, `"0"` in
        a Tuple; and the names of further inputs); any other network gets the
        tree without the action mask, or its only array.
    """
    if is_leaf(encoded):
        return [encoded, *further.values()] if further else encoded
    form = form_of_inputs(network)
    if form is not None:
        return _chosen(network, form, dict(named_leaves(encoded)) | further)
    if isinstance(encoded, Mapping):
        encoded = {k: v for k, v in encoded.items() if k != ACTION_MASK}
    arrays = leaves(encoded)
    observation = arrays[0] if len(arrays) == 1 else encoded
    return [observation, *further.values()] if further else observation


def form_of_inputs(network: keras.Model) -> Any:
    """Returns the symbolic inputs of a functional network, or None."""
    # Subclassed networks have an `input` with generated names as soon as
    # they were called, but no `inputs`.
    inputs = getattr(network, "inputs", None)
    if inputs is None or isinstance(network, keras.Sequential):
        return inputs and inputs[0]
    return network.input


def _chosen(network: keras.Model, form: Any, arrays: dict[str, Any]) -> Any:
    """Returns the arrays that a functional network's inputs are named after."""
    mapping = isinstance(form, Mapping)
    tensors = keras.tree.flatten(form)
    names = list(form) if mapping else [each.name for each in tensors]
    usable = [each for key, each in arrays.items() if key != ACTION_MASK]
    # The names of inputs may differ from the keys.
    arrays = {input_name(key): each for key, each in arrays.items()} | arrays
    if not arrays.keys() >= set(names):
        if len(names) == len(usable) == 1:
            # For example, a Sequential generates the name of its input.
            return usable[0]
        raise ValueError(
            f"Expected the inputs of {network.name!r} to be named after the "
            f"observation, among {sorted(arrays)}. Received: {sorted(names)}"
        )
    chosen = {name: arrays[name] for name in names}
    if mapping:
        return chosen
    return [*chosen.values()] if len(chosen) > 1 else chosen[names[0]]
