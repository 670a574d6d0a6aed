"""Cutting a prepared rollout into shuffled minibatches."""

import numpy as np


def shuffled_minibatches(
    samples: dict[str, np.ndarray],
    valid: np.ndarray,
    generator: np.random.Generator,
    passes: int,
    minibatches: int,
    batch_size: int,
) -> dict[str, np.ndarray]:
    """Shuffles samples and stacks them as equal minibatches.

    All minibatches have the same shape, whatever the number of valid samples:
    the valid ones are dealt out evenly (never more than one apart), the rest
    of each minibatch is filled with rows of weight 0. So no sample is left
    out, no small last minibatch makes a noisy update, and TensorFlow sees one
    signature.

    Args:
        samples: dict of `[N, ...]`. One row for each step.
        valid: `[V]` ints. Rows that are transitions.
        generator: `np.random.Generator`. Shuffles.
        passes: int. Times that every row is given.
        minibatches: int. Minibatches of one pass, M.
        batch_size: int. Rows of a minibatch.

    Returns:
        dict of `[passes * M, batch_size, ...]`, with `weight` added.

    Example:

    >>> rows = {"reward": np.arange(4.0)}
    >>> batches = shuffled_minibatches(
    ...     rows, np.arange(3), np.random.default_rng(0), 1, 2, 2)
    >>> batches["weight"].sum(axis=1).tolist()
    [2.0, 1.0]
    """
    columns = -(-len(valid) // minibatches)
    index = np.zeros((passes, minibatches, batch_size), np.intp)
    weight = np.zeros((passes, minibatches, batch_size), np.float32)
    dealt = np.zeros(columns * minibatches, np.intp)
    counted = np.arange(columns * minibatches) < len(valid)
    weight[:, :, :columns] = counted.reshape(columns, minibatches).T
    for one_pass in range(passes):
        dealt[: len(valid)] = generator.permutation(valid)
        index[one_pass, :, :columns] = dealt.reshape(columns, minibatches).T
    flat = index.reshape(-1)
    shape = (passes * minibatches, batch_size)
    stacked = {
        key: array.take(flat, axis=0).reshape(*shape, *array.shape[1:])
        for key, array in samples.items()
    }
    stacked["weight"] = weight.reshape(shape)
    return stacked
