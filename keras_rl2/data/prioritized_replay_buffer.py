"""A replay buffer that samples by priority."""

import math
from collections.abc import Callable
from typing import Any
from typing import SupportsFloat

import numpy as np
import numpy.typing as npt

from keras_rl2.basics.arguments import check_above_zero
from keras_rl2.basics.arguments import check_in_range
from keras_rl2.data.replay_buffer import ReplayBuffer
from keras_rl2.data.sum_tree import SumTree
from keras_rl2.saving.checkpoint_folder import SegmentLog
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree


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
        capacity: int. Transitions to hold, of all environments together,
            rounded down to a multiple of their number.
        num_envs: int. Environments, B.
        observation: `ArraySpec`, or a tree of them. Shape and dtype of one
            observation.
        action_shape: tuple. Shape of one action.
        action_dtype: Its dtype.
        alpha: float. Exponent of the priorities, α, 0 or more: 0 draws
            uniformly. Defaults to `0.6`.
        beta: float, or a function from the number of batches drawn so far to
            one, e.g. a `keras.optimizers.schedules.LearningRateSchedule`.
            Share of the bias that the weights correct, β. Defaults to `0.4`.
        epsilon: float above 0. Keeps every transition's probability above 0,
            ε. Defaults to `1e-06`.
        n_step: int. Rewards of a transition, n. Defaults to `1`.
        gamma: float. Discount factor, from 0 to 1. Defaults to `0.99`.
        seed: int. Seeds the draws. Defaults to `None`: not reproducible.

    Attributes:
        largest_priority: float. The largest p so far; 1 at first.

    Raises:
        ValueError: If an argument is out of bounds.
        MemoryError: If the memory is not available, as in `ReplayBuffer`.

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

    def __init__(
        self,
        capacity: int,
        num_envs: int,
        observation: Tree[ArraySpec],
        action_shape: tuple[int, ...],
        action_dtype: npt.DTypeLike,
        *,
        alpha: float = 0.6,
        beta: float | Callable[[int], SupportsFloat] = 0.4,
        epsilon: float = 1e-6,
        n_step: int = 1,
        gamma: float = 0.99,
        seed: int | None = None,
    ) -> None:
        check_in_range(alpha=(alpha, 0.0, 1e6))
        if not callable(beta):
            check_in_range(beta=(beta, 0.0, 1.0))
        check_above_zero(epsilon=epsilon)
        self.alpha = float(alpha)
        self.beta = beta
        self.epsilon = float(epsilon)
        self.largest_priority = 1.0
        self._batches = 0
        # Since the last use of the tree.
        self._changes: list[np.ndarray] = []
        super().__init__(
            capacity,
            num_envs,
            observation,
            action_shape,
            action_dtype,
            n_step=n_step,
            gamma=gamma,
            seed=seed,
        )
        self._tree = SumTree(self._ring.places)

    def sample(self, batch_size: int) -> dict[str, np.ndarray]:
        """Draws transitions in proportion to p^α, with replacement.

        Args:
            batch_size: int. Number of transitions, M.

        Returns:
            dict with the keys of `ReplayBuffer.sample`, and `weight` `[M]`
            float32, the factor of each loss, at most 1.

        Raises:
            ValueError: If no transition can be drawn yet.
        """
        self._check_batch_size(batch_size)
        beta = self.beta(self._batches) if callable(self.beta) else self.beta
        self._refresh()
        place = self._tree.sample(batch_size, self._generator)
        value = self._tree.get(place)
        self._batches += 1
        # N and the sum cancel out when the largest weight becomes 1.
        weight = (value.min() / value) ** float(beta)
        return self._gather(place) | {
            "index": self._ring.index_of(place),
            "weight": weight.astype(np.float32),
        }

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

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, when the buffer is full."""
        return super().nbytes + self._tree.nbytes

    def _settings(self) -> dict[str, float]:
        """Returns the settings that a saved state must match."""
        return {**super()._settings(), "alpha": self.alpha}

    def get_state(self, log: SegmentLog | None = None) -> dict[str, Any]:
        """Returns everything as plain arrays and numbers, copied.

        Args:
            log: `SegmentLog` or None. See `ReplayBuffer`. Defaults to `None`.

        Returns:
            dict with the keys of `ReplayBuffer.get_state`, and p^α of each
            transition.
        """
        self._refresh()
        state = super().get_state(log)
        # [rows * B] places -> [rows, B]
        shape = self._ring.filled(state["steps"]), self.num_envs
        return state | {
            "priority": self._tree.get(np.arange(math.prod(shape))).reshape(
                shape
            ),
            "largest_priority": self.largest_priority,
            "batches": self._batches,
        }

    def set_state(
        self, state: dict[str, Any], log: SegmentLog | None = None
    ) -> None:
        """Restores the state returned by `get_state`.

        Args:
            state: dict, as returned by `get_state`.
            log: `SegmentLog` or None. See `ReplayBuffer`. Defaults to `None`.

        Raises:
            ValueError: If it belongs to a buffer of other settings or shapes.
        """
        super().set_state(state, log)
        priority = np.asarray(state["priority"])
        self._changes.clear()
        self._tree = SumTree(self._tree.capacity)
        self._tree.update(np.arange(priority.size), priority.reshape(-1))
        self.largest_priority = float(state["largest_priority"])
        self._batches = int(state["batches"])

    def _refresh(self) -> None:
        """Updates the tree for added and removed transitions."""
        if not self._changes:
            return
        place = np.concatenate(self._changes)
        self._changes.clear()
        newest = self.largest_priority**self.alpha
        drawable = self._is_drawable(place)
        self._tree.update(place, np.where(drawable, newest, 0.0))
