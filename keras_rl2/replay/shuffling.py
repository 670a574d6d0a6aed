"""Dealing a prepared rollout out to shuffled minibatches."""

import numpy as np


def shuffled_rows(
    valid: np.ndarray,
    generator: np.random.Generator,
    passes: int,
    minibatches: int,
    batch_size: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Says which samples each minibatch is made of.

    All minibatches have the same shape, whatever the number of valid samples:
    the valid ones are dealt out evenly (never more than one apart), the rest
    of each minibatch is filled with rows of weight 0. So no sample is left
    out, no small last minibatch makes a noisy update, and TensorFlow sees one
    signature.

    Args:
        valid: `[V]` ints. Samples that are transitions.
        generator: `np.random.Generator`. Shuffles.
        passes: int. Times that every sample is given.
        minibatches: int. Minibatches of one pass, M.
        batch_size: int. Samples of a minibatch.

    Returns:
        Rows `[passes * M, batch_size]` int32, and their weights, float32.

    Example:

    >>> rows, weight = shuffled_rows(
    ...     np.arange(3), np.random.default_rng(0), 1, 2, 2)
    >>> weight.tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    columns = -(-len(valid) // minibatches)
    rows = np.zeros((passes, minibatches, batch_size), np.int32)
    weight = np.zeros((passes, minibatches, batch_size), np.float32)
    dealt = np.zeros(columns * minibatches, np.int32)
    counted = np.arange(columns * minibatches) < len(valid)
    # [columns * M] -> [M, columns]: each minibatch takes every M-th sample.
    weight[:, :, :columns] = counted.reshape(columns, minibatches).T
    for one_pass in range(passes):
        dealt[: len(valid)] = generator.permutation(valid)
        rows[one_pass, :, :columns] = dealt.reshape(columns, minibatches).T
    # [passes, M, batch] -> [passes * M, batch]
    shape = (passes * minibatches, batch_size)
    return rows.reshape(shape), weight.reshape(shape)
