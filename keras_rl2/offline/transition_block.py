"""Transitions made of episodes in memory."""

from collections import deque
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.data.replay_buffer import complete_windows
from keras_rl2.offline.episode_rows import EpisodeRows
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

# Rows of a trajectory for an agent's statistics.
_SHOWN_ROWS = 16384


class TransitionBlock:
    """Transitions of n steps, accessed by their numbers.

    Rewards, discounts and windows are the same as in
    `keras_rl2.data.ReplayBuffer`: a truncation shortens the window and keeps
    the bootstrap, a termination removes it.

    Args:
        rows: `EpisodeRows`.
        drawn: `[P]` int64. Number of the first steps of each piece that may
            be drawn; the later ones only complete windows.
        agent: `keras_rl2.Agent`, bound to its spaces. Its observations and
            normalized actions are returned, discounted by its `gamma`.
        n_step: int. Rewards of a transition, n.
        name: str. The name of the source of the rows.

    Raises:
        ValueError: If the agent's observations are of another form.
    """

    def __init__(
        self,
        rows: EpisodeRows,
        drawn: np.ndarray,
        agent: CollectingAgent,
        n_step: int,
        name: str,
    ) -> None:
        self._rows = rows
        before = np.cumsum(drawn) - drawn
        # [P] of pieces -> [D] of their steps
        row = np.repeat(rows.start - before, drawn)
        self._drawable: np.ndarray = row + np.arange(len(row))
        self._observation = _cast(
            rows.observation, agent.observation_spec, name
        )
        taken = map_leaves(
            lambda array: array.take(self._drawable, axis=0), rows.action
        )
        self._action = np.asarray(agent.policy_head.from_environment(taken))
        self._span, self._reward, self._discount = _windows(
            rows, self._drawable, n_step, agent.gamma
        )

    def __len__(self) -> int:
        """Returns the number of transitions."""
        return len(self._drawable)

    def sample(
        self, generator: np.random.Generator, count: int
    ) -> dict[str, Any]:
        """Draws transitions uniformly, with replacement.

        Args:
            generator: NumPy generator.
            count: int. M.

        Returns:
            dict; see `take`.
        """
        return self.take(generator.integers(len(self), size=count))

    def take(self, index: np.ndarray) -> dict[str, Any]:
        """Returns transitions by their numbers.

        Args:
            index: `[M]` ints, from 0 to the length.

        Returns:
            dict of `observation`, `action`, `reward`, `discount` and
            `next_observation`, `[M, ...]`, copied.
        """
        row = self._drawable.take(index)

        def seen(row: np.ndarray) -> Any:
            return map_leaves(lambda a: a.take(row, axis=0), self._observation)

        return {
            "observation": seen(row),
            "action": self._action.take(index, axis=0),
            "reward": self._reward.take(index),
            "discount": self._discount.take(index),
            "next_observation": seen(row + self._span.take(index)),
        }

    def trajectories(self) -> Iterator[Trajectory]:
        """Yields the steps in order, for an agent's statistics.

        Yields:
            `Trajectory` of T steps of one environment; rows without a step
            are not valid.
        """
        rows = self._rows
        valid = np.zeros((len(rows.reward), 1), np.bool_)
        valid[self._drawable] = True
        shape = (len(valid), 1, *self._action.shape[1:])
        action = np.zeros(shape, self._action.dtype)
        action[self._drawable, 0] = self._action
        none = map_leaves(lambda array: array[:0], self._observation)
        for start in range(0, len(valid) - 1, _SHOWN_ROWS):
            stop = min(start + _SHOWN_ROWS, len(valid) - 1)
            steps, seen = slice(start, stop), slice(start, stop + 1)
            yield Trajectory(
                # [T + 1, ...] -> [T + 1, 1, ...]
                observation=map_leaves(
                    lambda array, seen=seen: array[seen, None],
                    self._observation,
                ),
                action=action[steps],
                reward=rows.reward[steps, None],
                terminated=rows.terminated[steps, None] & valid[steps],
                truncated=rows.truncated[steps, None] & valid[steps],
                valid=valid[steps],
                final_observation=none,
                final_index=np.empty(0, np.int32),
            )


def _cast(
    observation: Tree[np.ndarray], spec: Tree[ArraySpec], name: str
) -> Tree[np.ndarray]:
    """Returns observations with the dtypes of the agent; checks the form."""
    given = {p: array.shape[1:] for p, array in named_leaves(observation)}
    wanted = {p: one.shape for p, one in named_leaves(spec)}
    if given != wanted:
        raise ValueError(
            f"Expected observations of shapes {wanted} in {name}. "
            f"Received: {given}"
        )
    cast: Tree[np.ndarray] = map_leaves(
        # Floats, e.g., are not made whole numbers.
        lambda one, each: each.astype(
            one.dtype, casting="same_kind", copy=False
        ),
        spec,
        observation,
    )
    return cast


def _windows(
    rows: EpisodeRows, drawable: np.ndarray, n_step: int, gamma: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns steps, rewards and discounts of transitions, `[D]` each."""
    ended = rows.terminated | rows.truncated
    # A piece ends with its episode, or later than its last window.
    ended = ended & rows.is_step
    ended[rows.start + rows.steps - 1] = True
    waiting = np.zeros((len(ended), 1), np.bool_)
    waiting[drawable] = True
    _, total, length = complete_windows(
        rows.reward[:, None], ended[:, None], waiting, n_step, gamma
    )
    span = length[drawable, 0]
    reward = total[drawable, 0].astype(np.float32)
    discount = (gamma ** np.arange(n_step + 1.0)).take(span)
    discount[rows.terminated.take(drawable + span - 1)] = 0.0
    return span, reward, discount.astype(np.float32)


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
        self._pieces = _cut(
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
        """Draws transitions; see `TransitionBlock.sample`."""
        self._refill()
        ends = np.cumsum([len(block) for block in self._blocks])
        index = generator.integers(ends[-1], size=count)
        which = np.searchsorted(ends, index, "right")
        parts = [
            block.take(index[which == number] - (end - len(block)))
            for number, (block, end) in enumerate(
                zip(self._blocks, ends, strict=True)
            )
        ]
        order = np.argsort(np.argsort(which, kind="stable"))
        self._drawn += count
        mixed: dict[str, Any] = map_leaves(
            lambda *each: np.concatenate(each).take(order, axis=0), *parts
        )
        return mixed

    def trajectories(self) -> Iterator[Trajectory]:
        """Yields the steps in memory; see `TransitionBlock`."""
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
        pieces[:, 2] = np.minimum(
            pieces[:, 2] + self._ahead, self._lengths[pieces[:, 0]]
        )
        return self._read(pieces, drawn)


def _cut(lengths: np.ndarray, episodes: np.ndarray, most: int) -> np.ndarray:
    """Cuts episodes into pieces `[P, 3]` of at most so many steps."""
    counts = -(-lengths // most)
    before = np.cumsum(counts) - counts
    number = np.arange(counts.sum()) - np.repeat(before, counts)
    start = number * most
    stop = np.minimum(start + most, np.repeat(lengths, counts))
    return np.stack([np.repeat(episodes, counts), start, stop], axis=1)
