"""Returns and lengths of the episodes that rollouts have finished."""

from collections import deque
from typing import Any

import numpy as np

from keras_rl2.collecting.broken_episodes import BrokenEpisodes
from keras_rl2.collecting.trajectory import Trajectory


class EpisodeStatistics:
    """Adds up rewards over rollouts, as episodes go on from one to the next.

    Args:
        num_envs: int. Environments, B.
        window: int. Episodes that are kept.

    Attributes:
        returns: deque of float. Of the last episodes, in the order in which
            they ended.
        lengths: deque of int. Likewise.
    """

    def __init__(self, num_envs: int, window: int) -> None:
        self.returns: deque[float] = deque(maxlen=window)
        self.lengths: deque[int] = deque(maxlen=window)
        self._return = np.zeros(num_envs)
        self._length = np.zeros(num_envs, np.int64)

    def begin(self) -> None:
        """Says that all environments begin new episodes."""
        self._return[:] = 0.0
        self._length[:] = 0

    def count(
        self, trajectory: Trajectory, broken: BrokenEpisodes | None
    ) -> None:
        """Adds a rollout.

        Args:
            trajectory: `Trajectory` of T steps of B environments.
            broken: `BrokenEpisodes` or None. What failures have left of it.
        """
        if broken is not None:
            self._return[broken.cut_before] = 0.0
            self._length[broken.cut_before] = 0
        # [T, B], each from the beginning of the rollout on.
        reward = np.where(trajectory.valid, trajectory.reward, 0.0)
        returns = self._return + np.cumsum(reward, axis=0, dtype=np.float64)
        lengths = self._length + np.cumsum(trajectory.valid, axis=0)
        before_return = np.zeros(len(self._return))
        before_length = np.zeros(len(self._return), np.int64)
        over, counted = trajectory.ended, trajectory.ended
        if broken is not None:
            over, counted = over | broken.cut, counted & ~broken.cut
        for t, b in np.argwhere(over):
            if counted[t, b]:
                self.returns.append(returns[t, b] - before_return[b])
                self.lengths.append(lengths[t, b] - before_length[b])
            before_return[b] = returns[t, b]
            before_length[b] = lengths[t, b]
        self._return = returns[-1] - before_return
        self._length = lengths[-1] - before_length

    def get_state(self) -> dict[str, Any]:
        """Returns what later statistics depend on, as plain data."""
        return {
            "episode_returns": [float(r) for r in self.returns],
            "episode_lengths": [int(n) for n in self.lengths],
            "current_return": self._return.copy(),
            "current_length": self._length.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave.

        Args:
            state: dict, as returned by `get_state`.
        """
        self.returns.clear()
        self.returns.extend(state["episode_returns"])
        self.lengths.clear()
        self.lengths.extend(state["episode_lengths"])
        self._return = np.array(state["current_return"], np.float64)
        self._length = np.array(state["current_length"], np.int64)
