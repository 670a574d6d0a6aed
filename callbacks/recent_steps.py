"""What an agent has seen and done lately."""

from collections import deque

import numpy as np

from keras_rl2.callbacks.protocols import StepsTaken


class RecentSteps:
    """The last observations and actions, and the largest reward of all.

    Args:
        rows: int. Steps to keep, at least. Defaults to `256`.
    """

    def __init__(self, rows: int = 256) -> None:
        self.rows = rows
        self.largest_reward = 0.0
        self._parts: deque[tuple[np.ndarray, np.ndarray]] = deque()

    def take(self, trajectory: StepsTaken) -> None:
        """Takes steps that are spread evenly over a trajectory.

        Args:
            trajectory: `keras_rl2.data.Trajectory` of T steps of B
                environments.
        """
        rows = np.flatnonzero(trajectory.valid)
        if not rows.size:
            return
        t, b = np.divmod(rows, trajectory.valid.shape[1])
        largest = float(np.abs(trajectory.reward[t, b]).max())
        self.largest_reward = max(self.largest_reward, largest)
        picked = np.linspace(0, rows.size - 1, min(rows.size, self.rows))
        t, b = t[picked.astype(int)], b[picked.astype(int)]
        part = trajectory.observation[t, b], trajectory.action[t, b]
        self._parts.append(part)
        while len(self) - len(self._parts[0][0]) >= self.rows:
            self._parts.popleft()

    def __len__(self) -> int:
        """Returns the number of steps that are kept."""
        return sum(len(observation) for observation, _ in self._parts)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns observations `[N, ...]` and actions `[N, ...]`."""
        observations, actions = zip(*self._parts, strict=True)
        return np.concatenate(observations), np.concatenate(actions)
