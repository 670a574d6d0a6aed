"""The minibatches of a round: their shapes, and how samples are assigned.

M: transitions drawn at once.
"""

import numpy as np

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
