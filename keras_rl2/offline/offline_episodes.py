"""The recorded episodes that an agent learns from."""

from collections.abc import Iterator
from typing import Any
from typing import Protocol

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.offline.episode_rows import EpisodeRows
from keras_rl2.offline.episode_rows import check_actions
from keras_rl2.offline.episode_rows import check_rows
from keras_rl2.offline.episode_source import EpisodeSource
from keras_rl2.offline.transition_block import BlockPool
from keras_rl2.offline.transition_block import TransitionBlock
from keras_rl2.offline.transition_block import TransitionForm
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.spaces import supported as spaces
from keras_rl2.spaces.trees import map_leaves

# Held for each step besides its own numbers: windows, normalized actions.
_BYTES_BESIDE = 40


class TransitionStore(Protocol):
    """Transitions in an agent's form, all of them in memory or not."""

    def sample(
        self, generator: np.random.Generator, count: int
    ) -> dict[str, Any]:
        """Draws transitions uniformly, with replacement.

        Args:
            generator: NumPy generator.
            count: int. M.

        Returns:
            dict; see `TransitionBlock.take`.
        """

    def trajectories(self) -> Iterator[Trajectory]:
        """Yields the transitions in memory, in temporal order.

        Yields:
            `Trajectory` of T steps of one environment.
        """

    def get_state(self) -> dict[str, Any]:
        """Returns the state that later draws depend on."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state that `get_state` returned."""


class OfflineEpisodes:
    """Episodes of a source, held in memory or read while they are drawn.

    They are the part of an `OfflineDataset` that needs no agent.

    Args:
        source: `EpisodeSource`. It is closed once everything has been read.
        chosen: `[E]` int64. Numbers of the episodes to learn from.
        observation_space: `gymnasium.Space` or None. The space of
            observations; None for that of the source.
        action_space: `gymnasium.Space` or None. The space of actions; None
            for that of the source.
        memory_limit: int. Bytes that are held in memory.

    Attributes:
        name: str. The name of the source in error messages.
        observation_space: `gymnasium.Space`. None until it is known.
        action_space: `gymnasium.Space`. None until it is known.
        returns: `[E]` float64. Return of each episode.
        lengths: `[E]` int64. Transitions of each episode.
        rows: `EpisodeRows`. All rows; None if they are streamed.

    Raises:
        ValueError: If spaces do not agree or are not supported, or the data
            is damaged.
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
        """Bytes of all episodes in memory, with their transitions."""
        return (self.transitions + len(self)) * self._bytes_of_row

    @property
    def streams(self) -> bool:
        """Whether data is read while it is drawn."""
        return self.nbytes > self._memory_limit

    @property
    def _bytes_of_row(self) -> int:
        """Bytes of a step in memory, with its transition."""
        return self._source.row_bytes + _BYTES_BESIDE

    def _settle_spaces(self) -> None:
        """Compares spaces passed as arguments with the spaces of the source."""
        for key in ("observation_space", "action_space"):
            given, read = getattr(self, key), getattr(self._source, key)
            if given is None:
                setattr(self, key, read)
            elif read is not None:
                kind = key.removesuffix("_space")
                spaces.check_same(self.name, **{kind: (read, given)})
        if self.observation_space is not None:
            spaces.check_observation_space(self.observation_space)
        if self.action_space is not None:
            spaces.check_action_space(self.action_space)

    def _load(self) -> EpisodeRows | None:
        """Reads all episodes, if they fit; else one step, to check its form."""
        if self.streams:
            self._read_first(np.minimum(self.lengths[:1], 1))
            return None
        rows = self._read_first(self.lengths)
        self._source.close()
        return rows

    def _read_first(self, lengths: np.ndarray) -> EpisodeRows:
        """Reads the first steps, `lengths` of each, of the first episodes."""
        chosen = self._chosen[: len(lengths)]
        return self._read(
            np.stack([chosen, np.zeros_like(chosen), lengths], axis=1)
        )

    def _read(self, pieces: np.ndarray) -> EpisodeRows:
        """Reads pieces of episodes, and checks their numbers."""
        rows = self._source.read(pieces)
        check_rows(rows, self.name)
        if self.action_space is not None:
            check_actions(rows, self.action_space, self.name)
        return rows

    def bind(self, agent: CollectingAgent, owner: str) -> None:
        """Settles the spaces between data and agent.

        Args:
            agent: `keras_rl2.Agent`. It is bound to the spaces.
            owner: str. Name of the class that takes the spaces as arguments.

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
        """Returns the transitions in the form of an agent.

        Args:
            form: `TransitionForm`.
            seed: `np.random.SeedSequence`. Shuffles the pieces of a dataset
                that streams.

        Returns:
            `TransitionStore`.

        Raises:
            ValueError: If the agent's observations are of another form.
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
        """Returns statistics of the data; see `OfflineDataset.describe`."""
        rows = self.rows
        if rows is None:
            # At least one step: draws hold some too, even if none fits.
            room = max(self._memory_limit // (4 * self._bytes_of_row), 1)
            before = np.cumsum(self.lengths) - self.lengths
            lengths = np.minimum(self.lengths, room - before)
            rows = self._read_first(lengths[lengths > 0])
        is_step = rows.is_step
        action: Any
        if isinstance(self.action_space, Discrete):
            assert isinstance(rows.action, np.ndarray)
            action = _shares(rows.action[is_step], self.action_space)
        else:
            action = map_leaves(
                lambda each: _of_columns(each[is_step]), rows.action
            )
        return {
            "episodes": len(self),
            "transitions": self.transitions,
            "episode_return": _statistics(self.returns),
            "episode_length": _statistics(self.lengths),
            "action": action,
            "observation": map_leaves(_of_columns, rows.observation),
            "bytes": self.nbytes,
            "streams": self.streams,
        }


def choose(
    returns: np.ndarray, best: float | None, min_return: float | None
) -> np.ndarray:
    """Returns the numbers of the episodes to learn from, in order.

    Args:
        returns: `[E]` float64. Of all episodes.
        best: float or None. See `OfflineDataset`.
        min_return: float or None. See `OfflineDataset`.

    Returns:
        `[K]` int64.

    Raises:
        ValueError: If no episode has a return of `min_return`.

    Example:

    >>> choose(np.array([1.0, 5.0, 5.0, 3.0]), best=0.5, min_return=None)
    array([1, 2])
    """
    chosen = np.ones(len(returns), np.bool_)
    if best is not None:
        count = max(round(best * len(returns)), 1)
        # Among equal returns the earlier episodes come first.
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


def _shares(action: np.ndarray, space: Discrete) -> dict[int, float]:
    """Returns the relative frequency of each action."""
    first = int(space.start)
    counts = np.bincount(
        action.astype(np.int64) - first, minlength=int(space.n)
    )
    return {
        first + index: float(count / len(action))
        for index, count in enumerate(counts)
    }


def _statistics(values: np.ndarray, axis: int | None = None) -> dict[str, Any]:
    """Returns mean, standard deviation and bounds, as plain numbers."""
    found = {
        "mean": values.mean(axis, np.float64),
        "std": values.std(axis, np.float64),
        "min": values.min(axis),
        "max": values.max(axis),
    }
    return {
        key: each.astype(np.float64).tolist() for key, each in found.items()
    }


def _of_columns(array: np.ndarray) -> dict[str, list[float]]:
    """Returns statistics of each column of `[N, ...]`."""
    # [N, ...] -> [N, numbers]
    return _statistics(array.reshape(len(array), -1), 0)
