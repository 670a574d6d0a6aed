"""Episodes in memory, with each next observation in the next row."""

import dataclasses
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.spaces import Discrete
from gymnasium.spaces import MultiDiscrete

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
        pieces: `[P, 3]` int64. Episode, first step, and the step to stop at.
        observation: `[R, ...]`. A tree of arrays.
        action: `[R, ...]`. In the environment's form, a tree of arrays.
        reward: `[R]` float32.
        terminated: `[R]` bool.
        truncated: `[R]` bool.
    """

    pieces: np.ndarray
    observation: Tree[np.ndarray]
    action: Tree[np.ndarray]
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray

    @property
    def steps(self) -> np.ndarray:
        """Steps of each piece, m, `[P]` int64."""
        steps: np.ndarray = self.pieces[:, 2] - self.pieces[:, 1]
        return steps

    @property
    def start(self) -> np.ndarray:
        """The first row of each piece, `[P]` int64."""
        rows = self.steps + 1
        start: np.ndarray = np.cumsum(rows) - rows
        return start

    @property
    def is_step(self) -> np.ndarray:
        """Rows that are steps, `[R]` bool."""
        is_step = np.ones(len(self.reward), np.bool_)
        is_step[self.start + self.steps] = False
        return is_step


def stacked(
    pieces: np.ndarray, part: Callable[[int, int, int], np.ndarray]
) -> np.ndarray:
    """Stacks the rows of pieces; rows that are missing in the end are 0.

    Args:
        pieces: `[P, 3]` int64. See `EpisodeRows`.
        part: Callable. Returns the steps of a piece, and perhaps one more.

    Returns:
        `[R, ...]`, float32 for float64.
    """
    row, out = 0, None
    for number, first, stop in pieces.tolist():
        rows = part(number, first, stop)
        if out is None:
            count = int((pieces[:, 2] - pieces[:, 1] + 1).sum())
            dtype = np.float32 if rows.dtype == np.float64 else rows.dtype
            out = np.zeros((count, *rows.shape[1:]), dtype)
        out[row : row + len(rows)] = rows
        row += stop - first + 1
    assert out is not None
    return out


def check_finite(rows: EpisodeRows, name: str) -> None:
    """Checks that all numbers are finite.

    Args:
        rows: `EpisodeRows`.
        name: str. The name of their source.

    Raises:
        ValueError: If one is not; it names the episode and the step.
    """
    steps = {"actions": rows.action, "rewards": rows.reward}
    for path, array in named_leaves(steps):
        if array.dtype.kind == "f":
            bad = ~np.isfinite(array)
            _refuse(rows, array, bad, rows.is_step, f"finite {path} in {name}")
    for path, array in named_leaves(rows.observation, "observations"):
        if array.dtype.kind == "f":
            bad = ~np.isfinite(array)
            _refuse(rows, array, bad, True, f"finite {path} in {name}")


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
    spaces = dict(named_leaves(space_tree(space)))
    given = dict(named_leaves(rows.action))
    shapes = {path: array.shape[1:] for path, array in given.items()}
    expected = {path: each.shape or () for path, each in spaces.items()}
    if shapes != expected:
        raise ValueError(
            f"Expected actions of shapes {expected} in {name}, for {space}. "
            f"Received: {shapes}"
        )
    for path, each in spaces.items():
        array = given[path]
        if array.dtype.kind == "f" and not isinstance(each, Box):
            raise ValueError(
                f"Expected integers as actions of {each} in {name}. Received: "
                f"dtype {array.dtype}; convert them, e.g. "
                "`actions.astype('int64')`"
            )
        low, high = _bounds(each)
        outside = (array < low) | (array > high)
        what = f"actions within {each} in {name}"
        _refuse(rows, array, outside, rows.is_step, what)


def _bounds(space: gymnasium.Space[Any]) -> tuple[Any, Any]:
    """Returns the lowest and the highest numbers of a space."""
    if isinstance(space, Box):
        low = space.low - _ROUNDING * (1.0 + np.abs(space.low))
        return low, space.high + _ROUNDING * (1.0 + np.abs(space.high))
    if isinstance(space, Discrete):
        return space.start, space.start + space.n - 1
    if isinstance(space, MultiDiscrete):
        return space.start, space.start + space.nvec - 1
    return 0, 1


def _refuse(
    rows: EpisodeRows,
    array: np.ndarray,
    bad: np.ndarray,
    counted: np.ndarray | bool,
    expected: str,
) -> None:
    """Raises an error for the first bad number, with its episode and step."""
    if not bad.any():
        return
    found = np.flatnonzero(bad.reshape(len(array), -1).any(axis=1) & counted)
    if found.size:
        row = int(found[0])
        piece = int(np.searchsorted(rows.start, row, "right")) - 1
        episode, first, _ = rows.pieces[piece].tolist()
        step = first + row - int(rows.start[piece])
        raise ValueError(
            f"Expected {expected}. Received: {array[row]} in episode "
            f"{episode}, step {step}"
        )
