"""A replay buffer that samples by priority."""

from collections.abc import Callable
from typing import Any
from typing import SupportsFloat

import numpy as np
import numpy.typing as npt

from keras_rl2.basics import arguments
from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.saving.checkpoint_folder import SegmentLog

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
        arguments.check_positive(capacity=capacity)
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
            # These are products, since random masks cost a branch per item.
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


class PrioritizedReplayBuffer(ReplayBuffer):
    """Replay that draws transitions in proportion to their last TD errors.

        p_i = |δ_i| + ε,  P(i) = p_i^α / Σ_j p_j^α
        w_i = (N P(i))^-β / max_j w_j

    A new transition gets the largest priority so far, so that it is drawn soon.
    A batch is stratified (see `SumTree.sample`), and its rows are in the order
    of the ring: draw every minibatch by itself, and do not split a large one.
    The maximum is over the weights of the batch, so that one transition of a
    tiny priority does not slow all updates down.

    Args:
        alpha: float. Exponent of the priorities, α, 0 or more: 0 draws
            uniformly. Defaults to `0.6`.
        beta: float, or a function from the number of batches drawn so far to
            one, such as a `keras.optimizers.schedules.LearningRateSchedule`.
            Share of the bias that the weights correct, β. Defaults to `0.4`.
        epsilon: float above 0. Keeps every transition's probability above 0,
            ε. Defaults to `1e-06`.

    Attributes:
        largest_priority: float. The largest p so far; 1 at first.

    Example:

    >>> from keras_rl2.spaces.array_spec import ArraySpec
    >>> number = ArraySpec((), "float32")
    >>> buffer = PrioritizedReplayBuffer(
    ...     100, 1, number, (), np.int32, alpha=1.0, beta=1.0, seed=0)
    >>> for t in range(2):
    ...     buffer.add([t], [0], [1.0], [False], [False], [True], [t + 1])
    >>> buffer.update_priorities([0, 1], [3.0, 1.0])
    >>> batch = buffer.sample(8)
    >>> batch["index"].tolist()
    [0, 0, 0, 0, 0, 0, 1, 1]
    >>> batch["weight"].astype(float).round(3).tolist()
    [0.333, 0.333, 0.333, 0.333, 0.333, 0.333, 1.0, 1.0]

    Reference:
        - [Schaul et al., 2016](https://arxiv.org/abs/1511.05952)
    """

    #: The tree has as many sums as leaves.
    _bytes_beside = 16
    _settings = (*ReplayBuffer._settings, "alpha")

    def __init__(
        self,
        *args: Any,
        alpha: float = 0.6,
        beta: float | Callable[[int], SupportsFloat] = 0.4,
        epsilon: float = 1e-6,
        **kwargs: Any,
    ) -> None:
        arguments.check_in_range(alpha=(alpha, 0.0, 1e6))
        if not callable(beta):
            arguments.check_in_range(beta=(beta, 0.0, 1.0))
        arguments.check_above_zero(epsilon=epsilon)
        self.alpha = float(alpha)
        self.beta = beta
        self.epsilon = float(epsilon)
        self.largest_priority = 1.0
        self._batches = 0
        # Places that have changed since the last use of the tree.
        self._changes: list[np.ndarray] = []
        super().__init__(*args, **kwargs)
        self._tree = SumTree(self._ring.places)

    def sample(self, batch_size: int) -> dict[str, Any]:
        """Draws transitions in proportion to p^α, with replacement.

        The dict of `ReplayBuffer.sample` also has `weight` `[M]` float32, the
        factor of each loss, at most 1.
        """
        self._check_batch_size(batch_size)
        beta = self.beta(self._batches) if callable(self.beta) else self.beta
        self._refresh()
        place = self._tree.sample(batch_size, self._generator)
        value = self._tree.get(place)
        self._batches += 1
        # N and the sum cancel out when the largest weight becomes 1.
        weight = (value.min() / value) ** float(beta)
        drawn = self._drawn(place)
        counted = np.transpose(drawn.get("weight", np.float32(1.0)))
        return drawn | {
            "index": self._ring.index_of(place),
            # [L, M] -> [M, L] of sequences
            "weight": (weight.astype(np.float32) * counted).T,
        }

    def _drawn(self, place: np.ndarray) -> dict[str, Any]:
        """Returns what is drawn at places `[M]`."""
        return self._gather(place)

    def update_priorities(
        self, index: npt.ArrayLike, td_error: npt.ArrayLike
    ) -> None:
        """Updates priorities by the TD errors of transitions.

        Transitions that have been overwritten in the meantime are skipped.

        Args:
            index: `[M]` ints, of a batch. If an index is repeated, its last TD
                error counts.
            td_error: `[M]` floats, of either sign.

        Raises:
            ValueError: If a TD error is not finite.
        """
        index = np.asarray(index, np.int64)
        priority = np.abs(np.asarray(td_error, np.float64)) + self.epsilon
        if not np.isfinite(priority).all():
            raise ValueError(
                f"Expected finite TD errors. Received: td_error={td_error!r}"
            )
        # New transitions get the largest priority of the time before.
        self._refresh()
        place = index % self._ring.places
        present = self._ring.index_of(place) == index
        present &= self._is_drawable(place)
        place, priority = place[present], priority[present]
        if place.size:
            self.largest_priority = max(
                self.largest_priority, float(priority.max())
            )
            self._tree.update(place, priority**self.alpha)

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns everything as plain data; see `ReplayBuffer`."""
        self._refresh()
        state = super().get_state(log)
        # [rows * B] places -> [rows, B]
        shape = self._ring.filled(state["steps"]), self.num_envs
        return state | {
            "priority": self._tree.get(np.arange(shape[0] * shape[1])).reshape(
                shape
            ),
            "largest_priority": self.largest_priority,
            "batches": self._batches,
        }

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`."""
        super().set_state(state, log)
        priority = np.asarray(state["priority"])
        self._changes.clear()
        self._tree = SumTree(self._tree.capacity)
        self._tree.update(np.arange(priority.size), priority.reshape(-1))
        self.largest_priority = float(state["largest_priority"])
        self._batches = int(state["batches"])

    def _changed(self, place: np.ndarray) -> None:
        """Called with the places of added or removed transitions, `[K]`."""
        self._changes.append(place)

    def _refresh(self) -> None:
        """Updates the tree for added and removed transitions."""
        if not self._changes:
            return
        place = np.concatenate(self._changes)
        self._changes.clear()
        newest = self.largest_priority**self.alpha
        drawable = self._is_drawable(place)
        self._tree.update(place, np.where(drawable, newest, 0.0))
