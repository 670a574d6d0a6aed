"""A replay buffer that samples sequences by priority."""

from typing import Any

import numpy as np

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.prioritized_replay_buffer import PrioritizedReplayBuffer
from keras_rl2.data.sequence_replay_buffer import SequenceReplayBuffer


class PrioritizedSequenceReplayBuffer(
    PrioritizedReplayBuffer, SequenceReplayBuffer
):
    """Replay that draws sequences in proportion to their priorities.

    See `PrioritizedReplayBuffer` for priorities and weights. The TD error of a
    sequence is, over its transitions t that count,

        δ = 0.9 max_t |δ_t| + 0.1 mean_t |δ_t|

    and its weight is a factor of their weights.

    Example:

    >>> from keras_rl2.spaces.array_spec import ArraySpec
    >>> number = ArraySpec((), "float32")
    >>> buffer = PrioritizedSequenceReplayBuffer(
    ...     100, 1, number, (), np.int32, state=[ArraySpec((8,), "float32")],
    ...     sequence_length=4, burn_in=2, stride=2, alpha=0.9, beta=0.6)
    >>> len(buffer)
    0

    Reference:
        [Kapturowski et al., 2019](https://openreview.net/forum?id=r1lyTjAqYX),
        R2D2.
    """

    _settings = (*SequenceReplayBuffer._settings, "alpha")

    def extend(self, trajectory: Trajectory) -> None:
        """Stores T steps of all environments; see `SequenceReplayBuffer`."""
        first, end = self._starts()
        super().extend(trajectory)
        oldest, newest = self._starts()
        # Those that can be drawn no longer, and those that are new.
        start = np.r_[first:oldest, max(end, oldest) : newest]
        step = (start * self.stride)[:, None] * self.num_envs
        # [starts] -> [starts * B]
        place = (step + np.arange(self.num_envs)).reshape(-1)
        self._changes.append(place % self._ring.places)

    def _changed(self, place: np.ndarray) -> None:
        """Does nothing: sequences need not consist of transitions."""

    def _is_drawable(self, place: np.ndarray) -> np.ndarray:
        """Returns whether sequences can be drawn by the places of starts."""
        step = self._ring.index_of(place) // self.num_envs
        start, rest = np.divmod(step, self.stride)
        first, end = self._starts()
        return (rest == 0) & (first <= start) & (start < end)

    def _drawn(self, place: np.ndarray) -> dict[str, Any]:
        """Returns the sequences that start at places `[M]`."""
        return self._sequences(self._ring.index_of(place))
