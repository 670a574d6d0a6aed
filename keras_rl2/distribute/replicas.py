"""Minibatches shared by the replicas of a `tf.distribute.Strategy`.

Each replica holds the whole minibatch and all results computed from it, except
for the inside of networks: it runs them on its share of the rows, and receives
the other replicas' outputs. Reductions over the minibatch, e.g. a weighted
mean, a normalisation or one in a custom loss, need no change: they are the
same as on one device.

Gradients are the same as on one device too. For computations that all replicas
make, each has the whole gradient; for those on its share alone, it has its own
part, R times as large with R replicas. The mean over replicas is right for
both.

Outside of a replica all functions here do nothing of their own.
"""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import TypeVar
from typing import cast

import tensorflow as tf

from keras_rl2.basics.shapes import Tensor

Result = TypeVar("Result")

# Dtypes of collective operations; all others travel as integers.
_TRAVELLING = ("float16", "float32", "float64", "int32", "int64")


def within_one() -> bool:
    """Returns whether the traced code is run by each replica."""
    return bool(
        tf.distribute.has_strategy()
        and not tf.distribute.in_cross_replica_context()
    )


def once(change: Callable[[], Result]) -> Result:
    """Calls a function once for all replicas, as on the first of them.

    Variables are changed on all of them. TensorFlow allows no branch within a
    replica that changes any; in here it does.

    Args:
        change: Callable. Uses only values that are the same on all replicas.

    Returns:
        The function's result, on each replica.
    """
    if not within_one():
        return change()
    context = tf.distribute.get_replica_context()
    return cast(Result, context.merge_call(lambda _: change()))


def by_rows(run: Callable[..., Any], *inputs: Any) -> Any:
    """Runs a function of independent rows on each replica's share.

    Args:
        run: Callable. Takes trees of `[B, ...]`, as many as `inputs`.
        *inputs: trees of `[B, ...]`, or None for no input.

    Returns:
        tree of `[B, ...]`, as `run` returns it.

    Raises:
        ValueError: If the rows cannot be shared out evenly.
    """
    if not within_one() or _number() == 1:
        return run(*inputs)
    shares = tf.nest.map_structure(
        lambda each: None if each is None else _share(each), inputs
    )
    return tf.nest.map_structure(_of_all_shares, run(*shares))


def of_all_workers(tree: object) -> Any:
    """Concatenates the minibatches of several processes, in their order.

    Args:
        tree: tree of `[B, ...]`. The minibatch of this process, which all of
            its replicas have.

    Returns:
        tree of `[workers * B, ...]`.
    """
    devices = len(tf.distribute.get_strategy().extended.worker_devices)
    if devices == _number():
        return tree
    index = _index() % devices
    return tf.nest.map_structure(
        lambda each: _gathered(_rows(each, index, devices)), tree
    )


def mean(gradients: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Returns the gradients of an update, the mean over replicas.

    Args:
        gradients: Sequence of tensors. Gradients of this replica.

    Returns:
        list of tensors, the same on all replicas.
    """
    if not within_one():
        return list(gradients)
    known = [each for each in gradients if each is not None]
    if not known:
        return list(gradients)

    context = tf.distribute.get_replica_context()
    # Gradients of an embedding have another form.
    means = iter(
        context.all_reduce(
            tf.distribute.ReduceOp.MEAN, [*map(tf.convert_to_tensor, known)]
        )
    )
    return [None if each is None else next(means) for each in gradients]


@tf.custom_gradient
def _share(array: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Returns this replica's share of the rows."""

    def gradient(of_rows: Tensor) -> Tensor:
        # Each has R times its own part; all need the whole.
        return _gathered(of_rows) / tf.cast(_number(), of_rows.dtype)

    return _rows(array, _index(), _number()), gradient


@tf.custom_gradient
def _of_all_shares(
    rows: Tensor,
) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Returns the rows of all replicas, given those of this one."""

    def gradient(of_all: Tensor) -> Tensor:
        part = _rows(of_all, _index(), _number())
        return part * tf.cast(_number(), part.dtype)

    return _gathered(rows), gradient


def _rows(array: Tensor, index: Tensor, number: int) -> Tensor:
    """Returns one of `number` equal parts of the rows of an array."""
    count = array.shape[0]
    if count is None or count % number:
        raise ValueError(
            "Expected minibatches whose rows can be shared out evenly to "
            f"{number} replicas. Received: {count} rows"
        )
    size = count // number
    begin = tf.concat(
        [index[None] * size, tf.zeros(len(array.shape) - 1, "int32")], axis=0
    )
    part: Tensor = tf.slice(array, begin, (size, *array.shape[1:]))
    return part


def _gathered(rows: Tensor) -> Tensor:
    """Returns the rows of all replicas, in the order of the replicas."""
    travelling = rows
    if rows.dtype.name not in _TRAVELLING:
        travelling = tf.cast(rows, "int32")
    context = tf.distribute.get_replica_context()
    gathered = context.all_gather(travelling, axis=0)
    count = rows.shape[0] * _number()
    complete: Tensor = tf.ensure_shape(
        tf.cast(gathered, rows.dtype), (count, *rows.shape[1:])
    )
    return complete


def _number() -> int:
    """Returns the number of replicas, R, in all processes."""
    return int(tf.distribute.get_strategy().num_replicas_in_sync)


def _index() -> Tensor:
    """Returns the index of this replica."""
    context = tf.distribute.get_replica_context()
    index: Tensor = tf.convert_to_tensor(
        context.replica_id_in_sync_group, "int32"
    )
    return index
