"""Minibatches shared by the replicas of a `tf.distribute.MirroredStrategy`.

Each replica holds the whole minibatch and all results computed from it, except
for the inside of networks: it runs them on its share of the rows, and receives
the other replicas' outputs. So a loss is the same as on one device.

Of computations that all replicas make, each has the whole gradient; of those on
its share alone, its own part, R times as large with R replicas. The mean over
replicas is right for both. Outside of a replica the functions do nothing.
"""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import TypeVar
from typing import cast

import tensorflow as tf

from keras_rl2.basics.shapes import Tensor

Result = TypeVar("Result")


def within_one() -> bool:
    """Returns whether the traced code is run by each replica."""
    return bool(
        tf.distribute.has_strategy()
        and not tf.distribute.in_cross_replica_context()
    )


def once(change: Callable[[], Result]) -> Result:
    """Calls a function of equal values once for all replicas.

    In it branches may change variables, which TensorFlow allows in no replica.
    """
    if not within_one():
        return change()
    context = tf.distribute.get_replica_context()
    return cast(Result, context.merge_call(lambda _: change()))


def by_rows(run: Callable[..., Any], *inputs: Any) -> Any:
    """Runs a function of independent rows on each replica's share.

    Args:
        run: Callable. Takes and returns trees of `[B, ...]`.
        *inputs: trees of `[B, ...]`, or None for no input.
    """
    if not within_one() or _number() == 1:
        return run(*inputs)
    shares = tf.nest.map_structure(
        lambda each: None if each is None else _share(each), inputs
    )
    return tf.nest.map_structure(_of_all_shares, run(*shares))


def mean(gradients: Sequence[Tensor]) -> list[Tensor]:
    """Returns the gradients of an update, the mean over replicas."""
    if not within_one() or not gradients:
        return list(gradients)
    # Gradients of an embedding have another form.
    dense = [tf.convert_to_tensor(each) for each in gradients]
    context = tf.distribute.get_replica_context()
    return list(context.all_reduce(tf.distribute.ReduceOp.MEAN, dense))


@tf.custom_gradient
def _share(array: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Returns this replica's share of the rows."""
    # Each has R times its own part; all need the whole.
    return _rows(array), lambda part: _gathered(part) / _number()


@tf.custom_gradient
def _of_all_shares(rows: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Returns the rows of all replicas, given those of this one."""
    return _gathered(rows), lambda whole: _rows(whole) * _number()


def _rows(array: Tensor) -> Tensor:
    """Returns the rows of this replica, an equal part."""
    count, number = array.shape[0], _number()
    if count % number:
        raise ValueError(
            "Expected minibatches that all devices can share evenly: change "
            f"`batch_size`. Received: {count} of them"
        )
    size = count // number
    context = tf.distribute.get_replica_context()
    begin = context.replica_id_in_sync_group * size
    shape = (size, *array.shape[1:])
    return tf.ensure_shape(array[begin : begin + size], shape)


def _gathered(rows: Tensor) -> Tensor:
    """Returns the rows of all replicas, in the order of the replicas."""
    context = tf.distribute.get_replica_context()
    shape = (rows.shape[0] * _number(), *rows.shape[1:])
    return tf.ensure_shape(context.all_gather(rows, axis=0), shape)


def _number() -> int:
    """Returns the number of replicas, R."""
    return int(tf.distribute.get_strategy().num_replicas_in_sync)
