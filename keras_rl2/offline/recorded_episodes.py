"""All transitions of a dataset, one episode after another."""

from typing import Any

import numpy as np

from keras_rl2.offline.offline import OfflineDataset
from keras_rl2.offline.transition_block import TransitionBlock
from keras_rl2.offline.transition_block import TransitionForm
from keras_rl2.policies.agent_protocols import CollectingAgent
from keras_rl2.spaces.trees import map_leaves


class RecordedEpisodes:
    """Transitions of an `OfflineDataset` in an agent's form, in order.

    Neither the dataset's binding nor the agent's statistics change: an
    evaluation must not change the evaluated agent.

    Args:
        offline: `OfflineDataset`. In memory.
        agent: `keras_rl2.Agent`. Determines the form of actions and the
            discount factor.

    Attributes:
        transitions: dict of `observation`, `action`, `reward`, `discount` and
            `next_observation`, all `[N, ...]`, of single steps.
        lengths: `[E]` int64. Transitions of each episode.

    Raises:
        ValueError: If the dataset streams, or the agent's spaces differ.
    """

    def __init__(self, offline: OfflineDataset, agent: CollectingAgent) -> None:
        rows = offline.rows
        if rows is None:
            raise ValueError(
                "Expected a dataset that fits into memory: raise "
                "`memory_limit`, or choose some episodes by `best`. "
                f"Received: {offline!r}, which streams"
            )
        if offline.observation_space and offline.action_space:
            agent.bind(offline.observation_space, offline.action_space)
        form = TransitionForm(
            agent.observation_spec, agent.policy_head, 1, agent.gamma
        )
        block = TransitionBlock(rows, rows.steps, form, "the dataset")
        self.transitions: dict[str, Any] = block.take(np.arange(len(block)))
        self.lengths = rows.steps

    def __len__(self) -> int:
        """Returns the number of transitions, N."""
        return int(self.lengths.sum())

    @property
    def first(self) -> np.ndarray:
        """Numbers of the first transitions of episodes, `[E]`."""
        first: np.ndarray = np.cumsum(self.lengths) - self.lengths
        return first

    @property
    def last(self) -> np.ndarray:
        """Numbers of the last transitions of episodes, `[E]`."""
        return np.cumsum(self.lengths) - 1

    def take(self, index: np.ndarray) -> dict[str, Any]:
        """Returns some of the transitions.

        Args:
            index: `[M]` ints.

        Returns:
            dict with the keys of `transitions`, of `[M, ...]`.
        """
        return {
            key: map_leaves(lambda array: array.take(index, axis=0), tree)
            for key, tree in self.transitions.items()
        }

    def padded(self, values: np.ndarray, fill: float) -> np.ndarray:
        """Stacks episodes along a new axis, padded to one length.

        Args:
            values: `[N]`. One for each transition.
            fill: float. The value after the end of shorter episodes.

        Returns:
            `[T, E]`, where T is the length of the longest.
        """
        rows = np.full((len(self.lengths), int(self.lengths.max())), fill)
        rows[np.arange(rows.shape[1]) < self.lengths[:, None]] = values
        return rows.T

    def flat(self, padded: np.ndarray) -> np.ndarray:
        """Removes the padding of `padded`: `[T, E]` -> `[N]`."""
        rows = padded.T
        found: np.ndarray = rows[
            np.arange(rows.shape[1]) < self.lengths[:, None]
        ]
        return found
