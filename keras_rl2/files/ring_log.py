"""A ring of transitions as a log of what was stored in it."""

import secrets
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import Protocol

import numpy as np

from keras_rl2.files.late_rows import LateRows

_FINAL = "final_"


class StateLog(Protocol):
    """Rows that are written once; see `SegmentLog`."""

    def stop(self, name: str) -> int:
        """Returns the row that a log goes up to."""

    def append(
        self, name: str, stop: int, arrays: Mapping[str, np.ndarray | LateRows]
    ) -> None:
        """Adds rows."""

    def forget(self, name: str, before: int) -> None:
        """Leaves out what holds nothing but rows before one."""

    def read(self, name: str) -> list[dict[str, np.ndarray]]:
        """Returns what was added, from old to new."""


def new_name() -> str:
    """Returns a name for the log of a ring, which no other ring has."""
    # Nothing that is learned depends on it.
    return f"replay-{secrets.token_hex(8)}"


def together(
    parts: Sequence[Mapping[str, np.ndarray]], steps: int, rows: int
) -> dict[str, np.ndarray]:
    """Puts parts together to the arrays of a ring's state.

    Args:
        parts: Sequence of dicts, as of `StepRing.steps_from`, from old
            to new. What comes later counts.
        steps: int. Steps that were stored.
        rows: int. Rows of the ring.

    Returns:
        dict of `[rows that are filled, B, ...]` and last observations, as of
        `StepRing.get_state`.
    """
    filled = min(steps + 1, rows)
    newest = parts[-1]
    whole = {
        key: np.zeros((filled, *array.shape[1:]), array.dtype)
        for key, array in newest.items()
        if _is_row(key, array)
    }
    whole["slot"] = np.full(whole["slot"].shape, -1, np.int64)
    before = 0
    for part in parts:
        step = int(part["first"]) + np.arange(len(part["slot"]))
        (here,) = np.nonzero((step > steps - rows) & (step <= steps))
        place = step[here] % rows
        for key, array in whole.items():
            array[place] = part[key][here]
        slot = whole["slot"][place]
        whole["slot"][place] = np.where(slot >= 0, slot + before, -1)
        before += _final_count(part)
    return {**whole, **_finals_by_age(parts, whole["slot"], steps)} | {
        "slot": _ages(whole["slot"], steps)
    }


def _is_row(key: str, value: Any) -> bool:
    """Whether an array of a state has a row for each step."""
    return (
        isinstance(value, np.ndarray)
        and value.ndim > 0
        and not key.startswith(_FINAL)
    )


def _final_count(part: Mapping[str, np.ndarray]) -> int:
    """Returns how many last observations a part has."""
    return next(len(v) for key, v in part.items() if key.startswith(_FINAL))


def _by_age(slot: np.ndarray, steps: int) -> np.ndarray:
    """Returns the places that have a slot, the oldest first."""
    filled = len(slot)
    row, env = np.nonzero(slot >= 0)
    # The row of the newest step, `steps`, comes first: all that it has by now
    # is an observation, and until it is overwritten the slot of the oldest.
    age = (row - steps) % filled
    # Within a row, in the order in which they were kept.
    order = np.lexsort((slot[row, env], age))
    places: np.ndarray = np.ravel_multi_index((row, env), slot.shape)[order]
    return places


def _ages(slot: np.ndarray, steps: int) -> np.ndarray:
    """Numbers last observations by their age."""
    ages = np.full(slot.shape, -1, np.int64)
    places = _by_age(slot, steps)
    ages.reshape(-1)[places] = np.arange(places.size)
    return ages


def _finals_by_age(
    parts: Sequence[Mapping[str, np.ndarray]], slot: np.ndarray, steps: int
) -> dict[str, np.ndarray]:
    """Returns the last observations that are still needed, oldest first."""
    chosen = slot.reshape(-1)[_by_age(slot, steps)]
    return {
        key: np.concatenate([part[key] for part in parts])[chosen]
        for key in parts[-1]
        if key.startswith(_FINAL)
    }
