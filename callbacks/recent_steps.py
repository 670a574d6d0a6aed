"""What an agent has seen and done lately."""

from collections import deque
from typing import Any

import numpy as np

from keras_rl2.callbacks.protocols import StepsTaken
from keras_rl2.spaces.trees import map_leaves


class RecentSteps:
    """The last observations and actions, and the largest reward of all.

    Args:
        rows: int. Steps to keep, at least. Defaults to `256`.
    """

    def __init__(self, rows: int = 256) -> None:
        self.rows = rows
        self.largest_reward = 0.0
        self._parts: deque[tuple[Any, np.ndarray]] = deque()

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
        observation = map_leaves(
            lambda array: array[t, b], trajectory.observation
        )
        self._parts.append((observation, trajectory.action[t, b]))
        while len(self) - len(self._parts[0][1]) >= self.rows:
            self._parts.popleft()

    def get_state(self) -> dict[str, Any]:
        """Returns what is kept, as plain data, not copied."""
        return {"largest": self.largest_reward, "parts": [*self._parts]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave.

        Args:
            state: dict, as returned by `get_state`.
        """
        self.largest_reward = state["largest"]
        self._parts = deque(state["parts"])

    def __len__(self) -> int:
        """Returns the number of steps that are kept."""
        return sum(len(action) for _, action in self._parts)

    def arrays(self) -> tuple[Any, np.ndarray]:
        """Returns observations `[N, ...]` and actions `[N, ...]`."""
        observations, actions = zip(*self._parts, strict=True)
        joined = map_leaves(lambda *each: np.concatenate(each), *observations)
        return joined, np.concatenate(actions)
