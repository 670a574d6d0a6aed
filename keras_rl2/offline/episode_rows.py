"""Episodes in memory, with each next observation in the next row."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.spaces import Discrete
from gymnasium.spaces import MultiBinary
from gymnasium.spaces import MultiDiscrete

from keras_rl2.collecting.checks import first_not_finite
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import named_leaves

# Bounds and actions may have been rounded to float32 in different orders.
_ROUNDING = 1e-5


@dataclasses.dataclass(frozen=True)
class EpisodeRows:
    """Pieces of episodes, one after another.

    A piece of m steps takes m + 1 rows: the row of its last observation has no
    action, and its values in the other arrays are meaningless.

    Attributes:
        observation: `[R, ...]`. A tree of arrays.
        action: `[R, ...]`. In the environment's form, a tree of arrays.
        reward: `[R]` float32.
        terminated: `[R]` bool.
        truncated: `[R]` bool.
        episode: `[P]` int64. The episode of each piece.
        first: `[P]` int64. The first step of each piece within its episode.
        start: `[P]` int64. The first row of each piece.
        steps: `[P]` int64. Steps of each piece, m.
    """

    observation: Tree[np.ndarray]
    action: Tree[np.ndarray]
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    episode: np.ndarray
    first: np.ndarray
    start: np.ndarray
    steps: np.ndarray

    @property
    def is_step(self) -> np.ndarray:
        """Rows that are steps, `[R]` bool."""
        is_step = np.ones(len(self.reward), np.bool_)
        is_step[self.start + self.steps] = False
        return is_step

    def place(self, row: int) -> str:
        """Returns the origin of a row in words: its episode and step.

        Args:
            row: int.
        """
        piece = int(np.searchsorted(self.start, row, "right")) - 1
        step = int(self.first[piece] + row - self.start[piece])
        return f"episode {int(self.episode[piece])}, step {step}"


def piece_starts(pieces: np.ndarray) -> tuple[np.ndarray, int]:
    """Returns the first row of each piece, and the number of rows.

    Args:
        pieces: `[P, 3]` int64. Episode, first step, and the step to stop at.

    Returns:
        Tuple of `[P]` int64 and int.
    """
    rows = pieces[:, 2] - pieces[:, 1] + 1
    ends = np.cumsum(rows)
    return ends - rows, int(ends[-1]) if len(ends) else 0


def stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Returns the dtype of numbers in memory: float32 for float64.

    Args:
        dtype: NumPy dtype. Of the source.
    """
    return np.dtype(np.float32) if dtype == np.float64 else dtype


def check_rows(rows: EpisodeRows, name: str) -> None:
    """Checks that all numbers are finite.

    Args:
        rows: `EpisodeRows`.
        name: str. The name of their source.

    Raises:
        ValueError: If one is not; it names the episode and the step.
    """
    is_step = rows.is_step
    for key, array in _named(rows):
        where = first_not_finite(array)
        if where is None:
            continue
        bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
        if not key.startswith("observations"):
            bad &= is_step
        found = np.flatnonzero(bad)
        if found.size:
            row = int(found[0])
            raise ValueError(
                f"Expected finite {key} in {name}. Received: {array[row]} in "
                f"{rows.place(row)}"
            )


def check_actions(
    rows: EpisodeRows, space: gymnasium.Space[Any], name: str
) -> None:
    """Checks that all actions are members of a space.

    Args:
        rows: `EpisodeRows`.
        space: `gymnasium.Space`. Of one action.
        name: str. The name of their source.

    Raises:
        ValueError: If one is not; it names the episode and the step.
    """
    leaves = dict(named_leaves(space_tree(space)))
    given = dict(named_leaves(rows.action))
    if [*leaves] != [*given]:
        raise ValueError(
            f"Expected actions of the arrays {[*leaves]} in {name}, as their "
            f"space has. Received: {[*given]}"
        )
    is_step = rows.is_step
    for path, leaf in leaves.items():
        array = given[path]
        if array.shape[1:] != (leaf.shape or ()):
            raise ValueError(
                f"Expected actions of shape {leaf.shape} in {name}, for "
                f"{leaf}. Received: {array.shape[1:]}"
            )
        if array.dtype.kind == "f" and not isinstance(leaf, Box):
            raise ValueError(
                f"Expected integers as actions of {leaf} in {name}. Received: "
                f"dtype {array.dtype}; convert them, e.g. "
                "`actions.astype('int64')`"
            )
        outside = ~_inside(leaf, array).reshape(len(array), -1).all(axis=1)
        found = np.flatnonzero(outside & is_step)
        if found.size:
            row = int(found[0])
            raise ValueError(
                f"Expected actions within {leaf} in {name}. Received: "
                f"{array[row]} in {rows.place(row)}"
            )


def _inside(space: gymnasium.Space[Any], array: np.ndarray) -> np.ndarray:
    """Returns for each number of actions whether it is within the space."""
    kinds = "fiu" if isinstance(space, Box) else "iub"
    if array.dtype.kind not in kinds:
        return np.zeros(array.shape, np.bool_)
    low: Any
    high: Any
    if isinstance(space, Box):
        low = space.low - _ROUNDING * (1.0 + np.abs(space.low))
        high = space.high + _ROUNDING * (1.0 + np.abs(space.high))
    elif isinstance(space, Discrete):
        low, high = space.start, space.start + space.n - 1
    elif isinstance(space, MultiDiscrete):
        low, high = space.start, space.start + space.nvec - 1
    else:
        assert isinstance(space, MultiBinary)
        low, high = 0, 1
    inside: np.ndarray = (array >= low) & (array <= high)
    return inside


def _named(rows: EpisodeRows) -> Iterator[tuple[str, np.ndarray]]:
    """Yields the arrays of floats with their names."""
    for name, tree in (
        ("observations", rows.observation),
        ("actions", rows.action),
        ("rewards", rows.reward),
    ):
        for path, array in named_leaves(tree):
            yield f"{name}.{path}" if path else name, array
