"""Sampling from a million items in proportion to their values."""

import numpy as np
import numpy.typing as npt

from keras_rl2.basics.arguments import check_positive

_LARGEST_TOP = 8192
_WORTH_SORTING = 512


class SumTree:
    """Values of N items, and a search for the item of a prefix sum.

    A binary tree where each node holds the sum of its two children. It is cut
    off at a level of some thousand nodes: NumPy searches this level directly,
    and descends the levels below for all queries together. The sum of each
    changed node is recomputed from its children, so that rounding errors do not
    accumulate.

    Args:
        capacity: int. Items, N. All values are 0 at first.

    Attributes:
        capacity: int. Items, N.

    Raises:
        ValueError: If there is not at least one item.

    Example:

    >>> tree = SumTree(4)
    >>> tree.update([0, 1, 3], [1.0, 2.0, 3.0])
    >>> tree.total
    6.0
    >>> tree.find([0.5, 1.0, 2.9, 3.0])
    array([0, 1, 1, 3])

    Reference:
        - [Schaul et al., 2016](https://arxiv.org/abs/1511.05952), appendix B
    """

    def __init__(self, capacity: int) -> None:
        check_positive(capacity=capacity)
        self.capacity = int(capacity)
        # The leaves first; the nodes of a level are the pairs of the level
        # below.
        self._levels: list[np.ndarray] = []
        nodes = self.capacity
        while nodes > _LARGEST_TOP:
            nodes = (nodes + 1) // 2
            self._levels.append(np.zeros((nodes, 2)))
        self._top = np.zeros(nodes)
        self._before = np.zeros(nodes + 1)

    @property
    def total(self) -> float:
        """Sum of all values."""
        return float(self._before[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        arrays = [*self._levels, self._top, self._before]
        return sum(array.nbytes for array in arrays)

    def get(self, index: npt.ArrayLike) -> np.ndarray:
        """Returns the values of items.

        Args:
            index: `[M]` ints below N.

        Returns:
            `[M]` float64.
        """
        return self._leaves().take(np.asarray(index, np.int64))

    def update(self, index: npt.ArrayLike, value: npt.ArrayLike) -> None:
        """Sets the values of items.

        Args:
            index: `[M]` ints below N. If an index is repeated, its last value
                counts.
            value: `[M]` floats, or one for all; 0 or more, finite.
        """
        node: np.ndarray = np.asarray(index, np.int64)
        self._leaves()[node] = value
        above = [level.reshape(-1) for level in self._levels[1:]]
        for level, parent in zip(
            self._levels, [*above, self._top], strict=False
        ):
            node = node // 2
            if node.size > _WORTH_SORTING:
                node = np.unique(node)
            pair = level.take(node, axis=0)
            parent[node] = pair[:, 0] + pair[:, 1]
        np.cumsum(self._top, out=self._before[1:])

    def find(self, query: npt.ArrayLike) -> np.ndarray:
        """Returns the item that each prefix sum falls into.

        This is the first item i with v_0 + ... + v_i > query. If queries are
        uniform in [0, total), items are returned in proportion to their values;
        an item of value 0 is never returned.

        Args:
            query: `[M]` floats, from 0 to the total. The total itself, a
                possible result of rounding, belongs to the last item.

        Returns:
            `[M]` int64.

        Raises:
            IndexError: If all values are 0.
        """
        total = np.nextafter(self._before[-1], 0.0)
        prefix = np.minimum(np.asarray(query, np.float64), total)
        node = np.searchsorted(self._before, prefix, side="right") - 1
        rest = prefix - self._before[node]
        found = self._descend_by_left(node, rest.copy())
        (none,) = np.nonzero(self.get(found) == 0)
        if none.size:
            found[none] = self._descend_by_both(node[none], rest[none])
        return found

    def sample(
        self, batch_size: int, generator: np.random.Generator
    ) -> np.ndarray:
        """Draws items with probabilities in proportion to their values.

        The draws are stratified: the sum is split into M equal parts, and one
        item is drawn from each. This keeps the probability of each item and
        reduces the variance of batches. The items are in the order of the
        parts.

        Args:
            batch_size: int. Items to draw, with replacement, M.
            generator: `np.random.Generator`. Draws.

        Returns:
            `[M]` int64.

        Raises:
            IndexError: If all values are 0.
        """
        part = np.arange(batch_size) + generator.random(batch_size)
        return self.find(part * (self.total / batch_size))

    def _descend_by_left(
        self, node: np.ndarray, query: np.ndarray
    ) -> np.ndarray:
        """Descends to items by the remainders, which it writes to `query`."""
        for level in reversed(self._levels):
            node = 2 * node
            # [pairs, 2] -> [nodes]
            left = level.reshape(-1).take(node)
            right = query >= left
            # Products, since random masks cost a branch per item.
            left *= right
            query -= left
            node += right
        return node

    def _descend_by_both(
        self, node: np.ndarray, query: np.ndarray
    ) -> np.ndarray:
        """Descends again if rounding led to an item of value 0.

        By rounding, the remainder may be a node's sum or more, although the
        right child is empty.
        """
        for level in reversed(self._levels):
            pair = level.take(node, axis=0)
            right = (query >= pair[:, 0]) & (pair[:, 1] > 0)
            query = query - pair[:, 0] * right
            node = 2 * node + right
        return node

    def _leaves(self) -> np.ndarray:
        """Returns the values, padded to whole pairs."""
        return self._levels[0].reshape(-1) if self._levels else self._top
