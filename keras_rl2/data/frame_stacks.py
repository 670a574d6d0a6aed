"""Stacks of frames, of which each frame is stored once."""

from collections.abc import Mapping

import numpy as np

from keras_rl2.data.memory import bytes_of
from keras_rl2.data.row_pool import RowPool
from keras_rl2.spaces.array_spec import ArraySpec

# Bytes of a stack below which reading frame by frame costs more than it saves.
_FEWEST_BYTES = 1024
# Frames of a stack: more are the rows of an image.
_MOST_FRAMES = 16
_WHOLE = "whole"


class FrameStacks:
    """Stacks of the last k frames at the most recent steps of environments.

    A step stores its newest frame, since the older ones are the newest of the
    steps before. Where they are not, as after a reset, the whole stack is
    stored in addition. So each stack is returned bit for bit, however it came
    about.

    Args:
        rows: int. Steps whose stacks can be read.
        num_envs: int. Environments, B.
        spec: `ArraySpec`. Shape `(k, ...)` and dtype of a stack.

    Example:

    >>> stacks = FrameStacks(3, 1, ArraySpec((2, 1), "int32"))
    >>> stacks.write(0, np.array([[[[5], [5]]], [[[5], [6]]], [[[6], [7]]]]))
    >>> stacks.read(np.array([0, 2]), np.array([0, 0]))[..., 0].tolist()
    [[5, 5], [6, 7]]
    """

    def __init__(self, rows: int, num_envs: int, spec: ArraySpec) -> None:
        self._count = spec.shape[0]
        # The stack of the oldest step has frames from before it.
        self.rows = rows + self._count - 1
        self._num_envs = num_envs
        frame = frame_spec(spec)
        self._frames = np.zeros((self.rows, num_envs, *frame.shape), spec.dtype)
        # Positions of whole stacks, -1 where there is none.
        self._slot = np.full((self.rows, num_envs), -1, np.int32)
        self._whole = RowPool({_WHOLE: spec}, "stacks of frames after resets:")

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        whole = self._whole.arrays[_WHOLE]
        return self._frames.nbytes + self._slot.nbytes + whole.nbytes

    def read(self, step: np.ndarray, env: np.ndarray) -> np.ndarray:
        """Returns stacks `[..., k, ...]` by steps and environments `[...]`."""
        # [...] -> [..., k], from old to new
        row = (step[..., None] + np.arange(1 - self._count, 1)) % self.rows
        place = row * self._num_envs + env[..., None]
        frames = self._frames.reshape(-1, *self._frames.shape[2:])
        stack = frames.take(place, 0)
        slot = self._slot.take(place)
        # The newest whole stack counts, for its frames and those before it.
        for frame in range(1, self._count):
            here = np.nonzero(slot[..., frame] >= 0)
            if here[0].size:
                whole = self._whole.arrays[_WHOLE][slot[..., frame][here]]
                of_whole = whole[:, self._count - 1 - frame :]
                stack[(*here, slice(frame + 1))] = of_whole
        return stack

    def write(self, step: int, stacks: np.ndarray) -> None:
        """Writes the stacks of a step and of those after it, `[T, B, k, ...]`.

        There may be a stack of the first step, of the observation after the
        newest one.
        """
        rows = (step + np.arange(len(stacks))) % self.rows
        envs = np.arange(self._num_envs)
        present = self.read(np.full_like(envs, step), envs)
        apart = np.empty(stacks.shape[:2], np.bool_)
        apart[:1] = (step == 0) | _differ(present[None], stacks[:1])
        apart[1:] = ~follows(stacks)
        slot = np.full(apart.shape, -1, np.int32)
        old = self._slot[rows]
        slot[0] = np.where(apart[0], -1, old[0])
        old[0][~apart[0]] = -1
        self._whole.remove(old)
        slot[apart] = self._whole.add({_WHOLE: stacks[apart]})
        self._slot[rows] = slot
        self._frames[rows] = stacks[:, :, -1]

    def get_part(
        self, key: str, start: int, stop: int
    ) -> dict[str, np.ndarray]:
        """Returns the steps from `start` to `stop`, inclusive, by themselves.

        The names of the arrays end with the key.
        """
        rows = np.arange(start, stop + 1) % self.rows
        slot = self._slot[rows]
        envs = np.arange(self._num_envs)
        first = self.read(np.full_like(envs, start), envs)
        # [B] stacks of the first step, then those of the others
        further = slot[1:][slot[1:] >= 0]
        slot[0] = envs
        slot[1:][slot[1:] >= 0] = self._num_envs + np.arange(further.size)
        whole = [first, self._whole.arrays[_WHOLE][further]]
        return {
            f"frame_{key}": self._frames[rows],
            f"stack_{key}": slot,
            f"whole_{key}": np.concatenate(whole),
        }

    def set_part(
        self,
        key: str,
        rows: np.ndarray,
        step: np.ndarray,
        part: Mapping[str, np.ndarray],
    ) -> None:
        """Writes rows of a part, `[R]`, to their steps, `[R]`."""
        old = self._slot[step % self.rows]
        self._whole.remove(old)
        slot = part[f"stack_{key}"][rows]
        whole = part[f"whole_{key}"][slot[slot >= 0]]
        slot[slot >= 0] = self._whole.add({_WHOLE: whole})
        self._slot[step % self.rows] = slot
        self._frames[step % self.rows] = part[f"frame_{key}"][rows]


def can_be_stack(spec: ArraySpec) -> bool:
    """Returns whether observations may be stacks that are worth a search."""
    is_large = bytes_of([spec]) >= _FEWEST_BYTES
    return is_large and 1 < spec.shape[0] <= _MOST_FRAMES


def frame_spec(spec: ArraySpec) -> ArraySpec:
    """Returns the shape and dtype of one frame of a stack."""
    return ArraySpec(spec.shape[1:], spec.dtype)


def follows(stacks: np.ndarray) -> np.ndarray:
    """Returns whether stacks continue those before, `[T + 1, B, k, ...]`.

    Returns:
        `[T, B]` bool: whether all frames but the newest are those of before.
    """
    return ~_differ(stacks[:-1, :, 1:], stacks[1:, :, :-1])


def _differ(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Returns whether any frame differs, `[T, B, k, ...]` -> `[T, B]`."""
    # [T, B, k, ...] -> [T, B, N]
    return (one != other).reshape(*one.shape[:2], -1).any(axis=2)
