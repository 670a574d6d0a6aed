"""The recorded episodes that are learned from."""

from typing import Any

import gymnasium
import numpy as np

from keras_rl2.offline.block_pool import BlockPool
from keras_rl2.offline.episode_rows import EpisodeRows
from keras_rl2.offline.episode_rows import check_actions
from keras_rl2.offline.episode_rows import check_rows
from keras_rl2.offline.episode_source import EpisodeSource
from keras_rl2.offline.offline_summary import summary
from keras_rl2.offline.transition_block import TransitionBlock
from keras_rl2.offline.transition_block import TransitionForm
from keras_rl2.offline.transition_store import TransitionStore
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.spaces import supported as spaces

# What is held of a step beside its own numbers: windows, actions of the policy.
_BYTES_BESIDE = 40


class OfflineEpisodes:
    """Episodes of a source, held in memory or read while they are drawn.

    What `OfflineDataset` is about, before it has an agent.

    Args:
        source: `EpisodeSource`. Is closed once everything has been read.
        chosen: `[E]` int64. Which of its episodes are learned from.
        observation_space: `gymnasium.Space` or None. What was observed; None
            for what the source says.
        action_space: `gymnasium.Space` or None. What could be done, alike.
        memory_limit: int. Bytes that are held in memory.

    Attributes:
        name: str. What the source is called in messages.
        observation_space: `gymnasium.Space`. None until somebody has said.
        action_space: `gymnasium.Space`. Alike.
        returns: `[E]` float64. Return of each episode.
        lengths: `[E]` int64. Transitions of each episode.
        rows: `EpisodeRows`. All of them; None where they are streamed.

    Raises:
        ValueError: If spaces do not agree or are not supported, or what is
            read cannot be used.
    """

    def __init__(
        self,
        source: EpisodeSource,
        chosen: np.ndarray,
        observation_space: gymnasium.Space[Any] | None,
        action_space: gymnasium.Space[Any] | None,
        memory_limit: int,
    ) -> None:
        self.name = source.name
        self.observation_space = observation_space
        self.action_space = action_space
        self.returns = source.returns[chosen]
        self.lengths = source.lengths[chosen]
        self._source = source
        self._chosen = chosen
        self._memory_limit = memory_limit
        self._settle_spaces()
        self.rows = self._load()

    def __len__(self) -> int:
        """Returns the number of episodes."""
        return len(self._chosen)

    @property
    def transitions(self) -> int:
        """Transitions of all episodes."""
        return int(self.lengths.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of all episodes in memory, with all that is made of them."""
        return (self.transitions + len(self)) * self._bytes_of_row

    @property
    def streams(self) -> bool:
        """Whether data is read while it is drawn."""
        return self.nbytes > self._memory_limit

    @property
    def _bytes_of_row(self) -> int:
        """What a step takes in memory, with all that is made of it."""
        return self._source.row_bytes + _BYTES_BESIDE

    def _settle_spaces(self) -> None:
        """Compares spaces that were given with those of the source."""
        for key in ("observation_space", "action_space"):
            given, read = getattr(self, key), getattr(self._source, key)
            if given is None:
                setattr(self, key, read)
            elif read is not None:
                what = key.removesuffix("_space")
                spaces.check_same(self.name, **{what: (read, given)})
        if self.observation_space is not None:
            spaces.check_observation_space(self.observation_space)
        if self.action_space is not None:
            spaces.check_action_space(self.action_space)

    def _load(self) -> EpisodeRows | None:
        """Reads all there is, if it fits; else one step, to see what it is."""
        if self.streams:
            self._read_first(np.minimum(self.lengths[:1], 1))
            return None
        rows = self._read_first(self.lengths)
        self._source.close()
        return rows

    def _read_first(self, lengths: np.ndarray) -> EpisodeRows:
        """Reads so many first steps of each of the first episodes."""
        chosen = self._chosen[: len(lengths)]
        return self._read(
            np.stack([chosen, np.zeros_like(chosen), lengths], axis=1)
        )

    def _read(self, pieces: np.ndarray) -> EpisodeRows:
        """Reads pieces of episodes, and refuses what cannot be used."""
        rows = self._source.read(pieces)
        check_rows(rows, self.name)
        if self.action_space is not None:
            check_actions(rows, self.action_space, self.name)
        return rows

    def bind(self, agent: CollectingAgent, owner: str) -> None:
        """Settles the spaces between data and agent.

        Args:
            agent: `keras_rl2.Agent`. Is bound to the spaces.
            owner: str. The class that could have been told of the spaces.

        Raises:
            ValueError: If neither knows them, or they do not fit the agent.
        """
        known = (self.observation_space, self.action_space)
        own = (agent.observation_space, agent.action_space)
        observation, action = (
            ours if ours is not None else theirs
            for ours, theirs in zip(known, own, strict=True)
        )
        if observation is None or action is None:
            raise ValueError(
                "Expected an agent that knows its spaces, or a dataset that "
                "does: pass `observation_space` and `action_space` to "
                f"`{owner}`. Received: neither"
            )
        agent.bind(observation, action)
        if known[1] is None and self.rows is not None:
            check_actions(self.rows, action, self.name)
        self.observation_space, self.action_space = observation, action

    def store(
        self, form: TransitionForm, seed: np.random.SeedSequence
    ) -> TransitionStore:
        """Makes transitions as an agent takes them.

        Args:
            form: `TransitionForm`.
            seed: `np.random.SeedSequence`. Shuffles what is read while it is
                drawn.

        Returns:
            `TransitionStore`.

        Raises:
            ValueError: If the observations are none that the agent takes.
        """
        if self.rows is not None:
            return TransitionBlock(self.rows, self.lengths, form, self.name)
        return BlockPool(
            self._source.lengths,
            self._chosen,
            self._memory_limit // self._bytes_of_row,
            form.n_step,
            lambda pieces, drawn: TransitionBlock(
                self._read(pieces), drawn, form, self.name
            ),
            seed,
        )

    def describe(self) -> dict[str, Any]:
        """Returns what the episodes hold; see `OfflineDataset.describe`."""
        rows = self.rows
        if rows is None:
            # One step at least: draws hold some too, however little fits.
            room = max(self._memory_limit // (4 * self._bytes_of_row), 1)
            before = np.cumsum(self.lengths) - self.lengths
            lengths = np.minimum(self.lengths, room - before)
            rows = self._read_first(lengths[lengths > 0])
        return summary(rows, self.action_space, self.returns, self.lengths) | {
            "bytes": self.nbytes,
            "streams": self.streams,
        }

    @property
    def in_words(self) -> str:
        """A line that says how many there are, and how good."""
        returns = self.returns
        return (
            f"{len(self):,} episodes, {self.transitions:,} transitions, "
            f"return {returns.mean():.1f} ({returns.min():.1f} to "
            f"{returns.max():.1f})"
        )


def choose(
    returns: np.ndarray, best: float | None, min_return: float | None
) -> np.ndarray:
    """Returns the episodes that are learned from, in order.

    Args:
        returns: `[E]` float64. Of all episodes.
        best: float or None. As of `OfflineDataset`.
        min_return: float or None. As of `OfflineDataset`.

    Returns:
        `[K]` int64. Their numbers.

    Raises:
        ValueError: If `best` is out of bounds, or there are none.

    Example:

    >>> choose(np.array([1.0, 5.0, 5.0, 3.0]), best=0.5, min_return=None)
    array([1, 2])
    """
    if best is not None and not 0.0 < best <= 1.0:
        raise ValueError(
            "Expected `best` to be a share of the episodes, over 0 and at most "
            f"1. Received: best={best}"
        )
    chosen = np.ones(len(returns), np.bool_)
    if best is not None:
        count = max(round(best * len(returns)), 1)
        # Of equal returns, the earlier ones.
        ranked = np.argsort(-returns, kind="stable")
        chosen[ranked[count:]] = False
    if min_return is not None:
        chosen &= returns >= min_return
    if not chosen.any():
        raise ValueError(
            f"Expected an episode of a return of at least {min_return}. "
            f"Received: {len(returns)} episodes, of {returns.min():g} to "
            f"{returns.max():g}"
        )
    return np.flatnonzero(chosen)
