"""What a dataset holds, in numbers."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete

from keras_rl2.offline.episode_rows import EpisodeRows
from keras_rl2.spaces.trees import map_leaves


def summary(
    rows: EpisodeRows,
    action_space: gymnasium.Space[Any] | None,
    returns: np.ndarray,
    lengths: np.ndarray,
) -> dict[str, Any]:
    """Returns what a dataset holds.

    Args:
        rows: `EpisodeRows`. Its steps, or some of them.
        action_space: `gymnasium.Space` or None.
        returns: `[E]` float64. Of all episodes.
        lengths: `[E]` int64. Of all episodes.

    Returns:
        dict of plain numbers, see `OfflineDataset.describe`.
    """
    is_step = rows.is_step
    action: Any
    if isinstance(action_space, Discrete):
        assert isinstance(rows.action, np.ndarray)
        action = _shares(rows.action[is_step], action_space)
    else:
        action = map_leaves(lambda each: _columns(each[is_step]), rows.action)
    return {
        "episodes": len(returns),
        "transitions": int(lengths.sum()),
        "episode_return": _numbers(returns),
        "episode_length": _numbers(lengths),
        "action": action,
        "observation": map_leaves(_columns, rows.observation),
    }


def _shares(action: np.ndarray, space: Discrete) -> dict[int, float]:
    """Returns how often each choice was made."""
    first = int(space.start)
    counts = np.bincount(
        action.astype(np.int64) - first, minlength=int(space.n)
    )
    return {
        first + index: float(count / len(action))
        for index, count in enumerate(counts)
    }


def _numbers(values: np.ndarray) -> dict[str, float]:
    """Returns mean, spread and bounds of numbers."""
    return {
        "mean": float(values.mean()),
        "std": float(values.std()),
        "min": float(values.min()),
        "max": float(values.max()),
    }


def _columns(array: np.ndarray) -> dict[str, list[float]]:
    """Returns mean, spread and bounds of each column of `[N, ...]`."""
    # [N, ...] -> [N, numbers]
    flat = array.reshape(len(array), -1)
    return {
        "mean": flat.mean(axis=0, dtype=np.float64).tolist(),
        "std": flat.std(axis=0, dtype=np.float64).tolist(),
        "min": flat.min(axis=0).astype(np.float64).tolist(),
        "max": flat.max(axis=0).astype(np.float64).tolist(),
    }
