"""Draws from data that does not fit into memory."""

from collections import deque
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.offline.transition_block import TransitionBlock
from keras_rl2.spaces.trees import map_leaves

# Blocks in the pool at a time; the oldest one is replaced.
_BLOCKS = 16
# Pieces of a block, at least.
_PIECES = 32

# From pieces `[P, 3]` and the number of drawable steps of each, `[P]`.
ReadBlock = Callable[[np.ndarray, np.ndarray], TransitionBlock]


class BlockPool:
    """A pool of a few blocks of transitions, each replaced once used up.

    All data is cut into pieces, runs of steps of one episode. They are
    reshuffled in each pass through the data, and read as blocks of many pieces.
    The pool holds 16 blocks, draws uniformly from all of them, and replaces the
    oldest one when as many transitions have been drawn as it has. So all
    transitions are drawn about equally often, and each is read once for all of
    its draws.

    Args:
        lengths: `[E]` int64. Steps of each episode.
        episodes: `[K]` int64. The episodes to draw from.
        rows: int. Most rows to hold in memory.
        n_step: int. Rewards of a transition: n - 1 more steps of each piece
            are read.
        read: Callable. Reads a block.
        seed: `np.random.SeedSequence`. Shuffles the pieces.
    """

    def __init__(
        self,
        lengths: np.ndarray,
        episodes: np.ndarray,
        rows: int,
        n_step: int,
        read: ReadBlock,
        seed: np.random.SeedSequence,
    ) -> None:
        self._read = read
        self._ahead = n_step - 1
        self._lengths = lengths
        # One more block is in memory while it is read.
        self._rows = max(rows // (_BLOCKS + 2), 1)
        self._pieces = cut(
            lengths[episodes], episodes, max(self._rows // _PIECES, 1)
        )
        self._generator = np.random.default_rng(seed)
        self._order: deque[int] = deque()
        self._blocks: deque[TransitionBlock] = deque()
        # Numbers of the pieces of each block.
        self._pieces_held: deque[list[int]] = deque()
        self._drawn = 0

    def sample(
        self, generator: np.random.Generator, count: int
    ) -> dict[str, Any]:
        """Draws transitions; see `TransitionStore`."""
        self._refill()
        ends = np.cumsum([len(block) for block in self._blocks])
        index = generator.integers(ends[-1], size=count)
        which = np.searchsorted(ends, index, "right")
        parts, places = [], []
        for number, block in enumerate(self._blocks):
            (place,) = np.nonzero(which == number)
            if place.size:
                first = ends[number] - len(block)
                parts.append(block.take(index[place] - first))
                places.append(place)
        order = np.argsort(np.concatenate(places))
        self._drawn += count
        mixed: dict[str, Any] = map_leaves(
            lambda *each: np.concatenate(each).take(order, axis=0), *parts
        )
        return mixed

    def trajectories(self) -> Iterator[Trajectory]:
        """Yields the steps in memory; see `TransitionStore`."""
        self._refill()
        for block in self._blocks:
            yield from block.trajectories()

    def get_state(self) -> dict[str, Any]:
        """Returns the numbers of the pieces in memory, and of the next ones."""
        return {
            "order": [*self._order],
            "held": [*self._pieces_held],
            "drawn": self._drawn,
            "generator": self._generator.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state, and reads its pieces; see `get_state`.

        Args:
            state: dict, as returned by `get_state`.
        """
        self._order = deque(state["order"])
        self._pieces_held = deque(state["held"])
        self._blocks = deque(map(self._block_of, self._pieces_held))
        self._drawn = int(state["drawn"])
        self._generator.bit_generator.state = state["generator"]

    def _refill(self) -> None:
        """Reads missing blocks, and replaces used ones."""
        while len(self._blocks) < _BLOCKS:
            self._blocks.append(self._next())
        while self._drawn >= len(self._blocks[0]):
            self._drawn -= len(self._blocks[0])
            # Before the next one is read, since both may not fit into memory.
            self._blocks.popleft()
            self._pieces_held.popleft()
            self._blocks.append(self._next())

    def _next(self) -> TransitionBlock:
        """Reads the next block."""
        chosen: list[int] = []
        rows = 0
        while rows < self._rows:
            if not self._order:
                self._order.extend(
                    self._generator.permutation(len(self._pieces)).tolist()
                )
            chosen.append(self._order.popleft())
            _, first, stop = self._pieces[chosen[-1]].tolist()
            rows += stop - first + 1
        self._pieces_held.append(chosen)
        return self._block_of(chosen)

    def _block_of(self, chosen: list[int]) -> TransitionBlock:
        """Reads some pieces as a block."""
        pieces = self._pieces[chosen]
        drawn = pieces[:, 2] - pieces[:, 1]
        ahead = np.minimum(
            pieces[:, 2] + self._ahead, self._lengths[pieces[:, 0]]
        )
        pieces[:, 2] = ahead
        return self._read(pieces, drawn)


def cut(lengths: np.ndarray, episodes: np.ndarray, most: int) -> np.ndarray:
    """Cuts episodes into pieces.

    Args:
        lengths: `[K]` int64. Steps of each of the episodes.
        episodes: `[K]` int64. Numbers of the episodes.
        most: int. Steps of a piece at most.

    Returns:
        `[P, 3]` int64. Episode, first step, and the step to stop at.

    Example:

    >>> cut(np.array([5, 2]), np.array([7, 8]), 3).tolist()
    [[7, 0, 3], [7, 3, 5], [8, 0, 2]]
    """
    counts = -(-lengths // most)
    before = np.cumsum(counts) - counts
    number = np.arange(counts.sum()) - np.repeat(before, counts)
    start = number * most
    stop = np.minimum(start + most, np.repeat(lengths, counts))
    return np.stack([np.repeat(episodes, counts), start, stop], axis=1)
