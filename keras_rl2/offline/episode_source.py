"""What offline data can be read from."""

from typing import Any
from typing import Protocol

import gymnasium
import numpy as np

from keras_rl2.offline.episode_rows import EpisodeRows


class EpisodeSource(Protocol):
    """Recorded episodes, read piece by piece.

    Attributes:
        name: str. What it is called in messages.
        observation_space: `gymnasium.Space` or None where nobody has said.
        action_space: `gymnasium.Space` or None, alike.
        lengths: `[E]` int64. Transitions of each episode.
        returns: `[E]` float64. Sum of the rewards of each episode.
        row_bytes: int. What a step takes in memory.
    """

    name: str
    observation_space: gymnasium.Space[Any] | None
    action_space: gymnasium.Space[Any] | None
    lengths: np.ndarray
    returns: np.ndarray
    row_bytes: int

    def read(self, pieces: np.ndarray) -> EpisodeRows:
        """Reads pieces of episodes.

        Args:
            pieces: `[P, 3]` int64. Episode, first step, and the step to stop
                at.

        Returns:
            `EpisodeRows`.

        Raises:
            ValueError: If there is something in them that cannot be used.
        """

    def close(self) -> None:
        """Lets go of files, when nothing more is to be read."""
