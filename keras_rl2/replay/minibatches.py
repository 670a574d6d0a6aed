"""The minibatches of a round: their shapes, and how samples are assigned.

M: transitions drawn at once.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves


def transition_spec(
    observation: Tree[ArraySpec], action: ArraySpec
) -> dict[str, Tree[ArraySpec]]:
    """Returns shapes and dtypes of one transition, as passed to agents.

    Args:
        observation: `ArraySpec`, or a tree of them. Spec of one observation.
        action: `ArraySpec`. Spec of one action of the policy.

    Returns:
        dict of `ArraySpec`, or trees of them.

    Example:

    >>> number = ArraySpec((), "float32")
    >>> sorted(transition_spec(number, ArraySpec((), "int32")))
    ['action', 'discount', 'next_observation', 'observation', 'reward',
     'weight']
    """
    scalar = ArraySpec((), "float32")
    return {
        "observation": observation,
        "action": action,
        "reward": scalar,
        "discount": scalar,
        "next_observation": observation,
        "weight": scalar,
    }


def tensor_specs(one: Any, *leading: int) -> Any:
    """Returns the TensorFlow specs of stacked arrays.

    Args:
        one: tree of `ArraySpec`. Specs of one element.
        *leading: int. Axes in front, e.g. `updates, batch`.

    Returns:
        tree of `tf.TensorSpec`.

    Example:

    >>> tensor_specs({"reward": ArraySpec((), "float32")}, 4, 32)["reward"]
    TensorSpec(shape=(4, 32), dtype=tf.float32, name=None)
    """
    return map_leaves(
        lambda each: tf.TensorSpec((*leading, *each.shape), each.dtype), one
    )


def into_minibatches(
    drawn: dict[str, Tree[np.ndarray]], updates: int
) -> dict[str, Tree[np.ndarray]]:
    """Splits a large sample into minibatches of equal size.

    Args:
        drawn: dict of `[M, ...]`, trees of arrays. Independent draws.
        updates: int. Number of minibatches, a divisor of M.

    Returns:
        dict of `[updates, M / updates, ...]`, views where NumPy can.

    Example:

    >>> into_minibatches({"reward": np.arange(6.0)}, 3)["reward"].tolist()
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    """
    cut: dict[str, Tree[np.ndarray]] = map_leaves(
        lambda each: each.reshape(
            updates, len(each) // updates, *each.shape[1:]
        ),
        drawn,
    )
    return cut


def shuffled_rows(
    valid: np.ndarray,
    generator: np.random.Generator,
    passes: int,
    minibatches: int,
    batch_size: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Assigns samples to shuffled minibatches.

    All minibatches have the same shape for any number of valid samples: the
    valid samples are distributed evenly (their numbers differ by at most one),
    and the rest of each minibatch is filled with rows of weight 0. Thus no
    sample is left out, no small last minibatch makes a noisy update, and
    TensorFlow traces one signature.

    Args:
        valid: `[V]` ints. Indices of the samples that are transitions.
        generator: `np.random.Generator`. Shuffles the samples.
        passes: int. Number of times that every sample occurs.
        minibatches: int. Minibatches of one pass, M.
        batch_size: int. Number of rows of a minibatch.

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
