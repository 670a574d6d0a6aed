"""Episodes in arrays, one after another."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import h5py
import numpy as np
import numpy.typing as npt

from keras_rl2.offline.episode_rows import EpisodeRows
from keras_rl2.offline.episode_rows import piece_starts
from keras_rl2.offline.episode_rows import stored_dtype
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

# The names of D4RL, which many files still use.
_OTHER_NAMES = {"terminals": "terminations", "timeouts": "truncations"}
_NEEDED = ("observations", "actions", "rewards", "terminations", "truncations")
_NEXT = "next_observations"
_COMPARED_ROWS = 65536


class ArraySource:
    """A record of N steps in temporal order, cut where episodes end.

    The observation after the last step of an episode is known only from
    `next_observations`. Without them, the last step of a truncated episode is
    left out: there is nothing to bootstrap from. If a step's next observation
    differs from the observation of the next step, the episode was interrupted
    there, and counts as truncated.

    Args:
        arrays: dict of `observations` and `actions` `[N, ...]`, arrays or trees
            of them; `rewards`, `terminations` and `truncations` `[N]`; and
            optionally `next_observations` `[N, ...]`.
        name: str. The name of the source in error messages.
        observation_space: `gymnasium.Space` or None. Defaults to `None`.
        action_space: `gymnasium.Space` or None. Defaults to `None`.

    Raises:
        ValueError: If a key is missing, or the arrays do not fit together.
    """

    def __init__(
        self,
        arrays: Mapping[str, Any],
        name: str,
        observation_space: gymnasium.Space[Any] | None = None,
        action_space: gymnasium.Space[Any] | None = None,
    ) -> None:
        self.name = name
        self.observation_space = observation_space
        self.action_space = action_space
        given = {_OTHER_NAMES.get(key, key): arrays[key] for key in arrays}
        _check_keys(given, name)
        given = {
            key: map_leaves(_as_array, tree) for key, tree in given.items()
        }
        count = _check_lengths(given, name)
        self._observation = given["observations"]
        self._next = given.get(_NEXT)
        self._action = given["actions"]
        self._reward = _column(given["rewards"], "fiu", np.float32)
        self._terminated = _column(given["terminations"], "biuf", np.bool_)
        self._truncated = _column(given["truncations"], "biuf", np.bool_)
        self._find_episodes(count)
        stored = [*leaves(self._observation), *leaves(self._action)]
        self.row_bytes = 6 + sum(map(_bytes_of_row, stored))

    def _find_episodes(self, count: int) -> None:
        """Sets the first steps, lengths and returns of episodes."""
        ended = self._terminated | self._truncated
        if self._next is not None:
            ended = ended | self._broken_off(count)
        ended[-1] = True
        last = np.flatnonzero(ended)
        begin = np.concatenate([[0], last[:-1] + 1])
        returns = np.add.reduceat(self._reward.astype(np.float64), begin)
        lengths = last - begin + 1
        if self._next is None:
            lengths = lengths - ~self._terminated[last]
        kept = lengths > 0
        if not kept.any():
            raise ValueError(
                f"Expected at least one transition in {self.name}: without "
                "`next_observations`, the last step of an episode that was "
                f"not terminated is left out. Received: {count} steps"
            )
        self._begin, self._whole = begin[kept], (last - begin + 1)[kept]
        self.lengths = lengths[kept].astype(np.int64)
        self.returns = returns[kept]

    def _broken_off(self, count: int) -> np.ndarray:
        """Returns for each step whether the record jumps after it, `[N]`."""
        broken = np.zeros(count, np.bool_)
        for here, following in zip(
            leaves(self._observation), leaves(self._next), strict=True
        ):
            for start in range(0, count - 1, _COMPARED_ROWS):
                stop = min(start + _COMPARED_ROWS, count - 1)
                differs = following[start:stop] != here[start + 1 : stop + 1]
                broken[start:stop] |= differs.reshape(stop - start, -1).any(1)
        return broken

    def read(self, pieces: np.ndarray) -> EpisodeRows:
        """Reads pieces of episodes; see `EpisodeSource`."""
        starts, count = piece_starts(pieces)
        episode, first, stop = pieces.T
        begin = self._begin[episode] + first
        steps = stop - first
        spans = [
            *zip(starts.tolist(), begin.tolist(), steps.tolist(), strict=True)
        ]

        def steps_of(array: np.ndarray) -> np.ndarray:
            out = np.zeros((count, *array.shape[1:]), stored_dtype(array.dtype))
            for row, start, length in spans:
                out[row : row + length] = array[start : start + length]
            return out

        followed = (stop < self._whole[episode]).tolist()

        def observations_of(
            array: np.ndarray,
            following: np.ndarray | None,
        ) -> np.ndarray:
            out = steps_of(array)
            for (row, start, length), inside in zip(
                spans, followed, strict=True
            ):
                end = start + length
                last = array[end - 1 : end]
                if inside:
                    last = array[end : end + 1]
                elif following is not None:
                    last = following[end - 1 : end]
                out[row + length] = last[0]
            return out

        nothing = map_leaves(lambda _: None, self._observation)
        return EpisodeRows(
            observation=map_leaves(
                observations_of,
                self._observation,
                nothing if self._next is None else self._next,
            ),
            action=map_leaves(steps_of, self._action),
            reward=steps_of(self._reward),
            terminated=steps_of(self._terminated),
            truncated=steps_of(self._truncated),
            episode=episode,
            first=first,
            start=starts,
            steps=steps,
        )

    def close(self) -> None:
        """Frees the arrays, when nothing more is to be read."""
        self._observation = self._next = self._action = None


def _check_keys(given: Mapping[str, Any], name: str) -> None:
    """Raises an error for missing or unknown keys."""
    missing = [key for key in _NEEDED if key not in given]
    unknown = sorted(set(given) - {*_NEEDED, _NEXT})
    if missing or unknown:
        raise ValueError(
            f"Expected {', '.join(_NEEDED)} and optionally {_NEXT} in {name}. "
            f"Received: {', '.join(sorted(given)) or 'nothing'}"
        )


def _check_lengths(given: Mapping[str, Any], name: str) -> int:
    """Returns the number of steps; raises an error if arrays disagree."""
    found: dict[str, tuple[int, ...]] = {}
    for key, tree in given.items():
        for path, array in named_leaves(tree):
            found[f"{key}.{path}" if path else key] = array.shape
            if array.dtype.kind not in "biuf":
                raise ValueError(
                    f"Expected arrays of numbers in {name}. Received: {key} "
                    f"of dtype {array.dtype}"
                )
    lengths = {shape[0] if shape else 0 for shape in found.values()}
    if len(lengths) != 1 or not max(lengths):
        raise ValueError(
            f"Expected arrays of one length, of at least one step, in {name}. "
            f"Received: {', '.join(f'{k} {v}' for k, v in found.items())}"
        )
    for key in ("rewards", "terminations", "truncations"):
        if len(found.get(key, ())) != 1:
            raise ValueError(
                f"Expected {key} of one number per step in {name}. Received: "
                f"{ {k: v for k, v in found.items() if k.startswith(key)} }"
            )
    if _NEXT in given:
        specs = [
            [(path, a.shape) for path, a in named_leaves(given[key])]
            for key in ("observations", _NEXT)
        ]
        if specs[0] != specs[1]:
            raise ValueError(
                f"Expected {_NEXT} of the shapes of observations in {name}, "
                f"{specs[0]}. Received: {specs[1]}"
            )
    return max(lengths)


def _as_array(array: npt.ArrayLike) -> Any:
    """Returns an array, or an `h5py.Dataset` as it is."""
    return array if isinstance(array, h5py.Dataset) else np.asanyarray(array)


def _column(array: np.ndarray, kinds: str, dtype: npt.DTypeLike) -> np.ndarray:
    """Returns an array of one number for each step."""
    if array.dtype.kind not in kinds:
        raise ValueError(
            f"Expected a column of numbers of kinds {kinds!r}. Received: "
            f"dtype {array.dtype}"
        )
    return np.asarray(array[0 : array.shape[0]]).astype(dtype)


def _bytes_of_row(array: np.ndarray) -> int:
    """Returns the bytes of one row of an array in memory."""
    size = int(np.prod(array.shape[1:], dtype=np.int64))
    return size * stored_dtype(array.dtype).itemsize
