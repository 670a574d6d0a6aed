"""What updates are made of: minibatches and gradients."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

import keras
import tensorflow as tf
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.spaces.trees import map_leaves

Gradients = TypeVar("Gradients")


def minibatch_of(data: Any) -> dict[str, Tensor]:
    """Returns what `train_step` was given as a dict with a `weight`.

    Args:
        data: dict of `[B, ...]`, in a tuple perhaps, as Keras hands it over.
            Without a `weight`, each row counts 1; a `sample_weight` beside it
            is a factor of that. What is float64, as NumPy makes it of its own
            accord, becomes float32.

    Returns:
        dict of `[B, ...]`.

    Raises:
        ValueError: If it is no dict, or there are targets beside it.
    """
    given: dict[str, Tensor]
    given, targets, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    if targets is not None or not isinstance(given, Mapping):
        raise ValueError(
            "Expected a minibatch to be a dict, with all that is learned from "
            "among its entries, and a `weight` of its rows perhaps. Received: "
            + ("targets `y` beside it" if targets is not None else repr(given))
        )
    batch: dict[str, Tensor] = map_leaves(
        lambda each: (
            ops.cast(each, "float32") if each.dtype == "float64" else each
        ),
        given,
    )
    if "weight" not in batch:
        ones = ops.ones(ops.shape(batch["action"])[:1], "float32")
        batch = {**batch, "weight": ones}
    if sample_weight is None:
        return batch
    return {**batch, "weight": _weighted(batch["weight"], sample_weight)}


def _weighted(weight: Tensor, factor: Any) -> Tensor:
    """Multiplies the weights of rows by those that came beside them."""
    factor = ops.cast(factor, "float32")
    if factor.shape != weight.shape:
        raise ValueError(
            "Expected `sample_weight` to have the shape of the minibatch's "
            f"`weight`, {tuple(weight.shape)}. "
            f"Received: {tuple(factor.shape)}"
        )
    product: Tensor = ops.cast(weight, "float32") * factor
    return product


def _ensured(tensor: Tensor) -> Tensor:
    """Returns a tensor through an operation that changes nothing."""
    # No `tf.identity`, which the graph optimizer takes away.
    return tf.raw_ops.EnsureShape(input=tensor, shape=tensor.shape)


def all_computed(gradients: Gradients) -> Gradients:
    """Returns gradients that no optimizer gets before all are there.

    To be called before anything is applied, once for all of an update.

    Args:
        gradients: Nested lists of tensors.

    Returns:
        The same.

    A variable that one loss changes may be read by another: the policy in
    the critics' targets, the critics in the policy's loss. `tf.function` has
    such reads come first, but TensorFlow 2.21's graph optimizer drops that
    order where a path seems to lead from the read to the change through the
    `IdentityN` in which Keras' optimizers gather all gradients; it then takes
    the `IdentityN` apart, and with it the path. Values before and after the
    change were mixed at random.
    """
    if tf.executing_eagerly():
        return gradients
    with tf.control_dependencies(tf.nest.flatten(gradients)):
        ensured: Gradients = tf.nest.map_structure(
            _ensured,
            gradients,
            expand_composites=True,
        )
    return ensured


def apply_gradients(
    optimizer: keras.optimizers.Optimizer,
    gradients: Sequence[Tensor | None],
    variables: Sequence[keras.Variable],
) -> None:
    """Makes one step of an optimizer.

    What Keras' optimizers do on each replica before they change anything is
    to sum gradients over all of them. TensorFlow registers a gradient of that
    sum, for as long as the process lives, and with it the graph of the update:
    some megabytes for each agent that was trained. What is called from between
    replicas makes no such sum; nor is there anything to be summed, with one
    replica, or of gradients that are those of all. One that scales losses
    refuses to be called from there, and sums as Keras does.

    Args:
        optimizer: `keras.optimizers.Optimizer`. One that is built.
        gradients: Sequence of tensors.
        variables: Sequence of `keras.Variable`. What they are the gradients
            of.
    """
    if tf.distribute.in_cross_replica_context():
        _apply_once(optimizer, gradients, variables)
        return
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        optimizer.apply(gradients, variables)
        return

    def apply(_: tf.distribute.Strategy) -> None:
        optimizer.apply(gradients, variables)

    tf.distribute.get_replica_context().merge_call(apply)


def _apply_part(
    optimizer: keras.optimizers.Optimizer,
    gradients: Sequence[Tensor | None],
    variables: Sequence[keras.Variable],
) -> None:
    """Makes a step within a replica, where Keras sums over all of them."""
    number = tf.distribute.get_strategy().num_replicas_in_sync
    parts = [None if each is None else each / number for each in gradients]
    optimizer.apply(parts, variables)


def _apply_once(
    optimizer: keras.optimizers.Optimizer,
    gradients: Sequence[Tensor | None],
    variables: Sequence[keras.Variable],
) -> None:
    """Makes a step between replicas, of gradients that all of them have."""
    strategy = tf.distribute.get_strategy()
    if not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        strategy.run(_apply_part, args=(optimizer, gradients, variables))
        return
    # What it does itself with gradients that are finite, as they are here.
    scale = tf.convert_to_tensor(optimizer.dynamic_scale.value)
    unscaled = [None if each is None else each / scale for each in gradients]
    _apply_once(optimizer.inner_optimizer, unscaled, variables)
    made = tf.convert_to_tensor(optimizer.step_counter.value) + 1
    grows = made >= optimizer.dynamic_growth_steps
    optimizer.step_counter.assign(tf.where(grows, tf.zeros_like(made), made))
    optimizer.dynamic_scale.assign(tf.where(grows, 2.0 * scale, scale))
