"""Episodes in the folder of a Minari dataset."""

import functools
import re
from collections.abc import Callable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from keras_rl2.files import hdf5_arrays
from keras_rl2.files.hdf5_arrays import Hdf5Error
from keras_rl2.offline.episode_rows import EpisodeRows
from keras_rl2.offline.episode_rows import piece_starts
from keras_rl2.offline.minari_metadata import read_metadata
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

#: Where Minari keeps the episodes, and what it says of them.
MAIN_FILE = "main_data.hdf5"
METADATA_FILE = "metadata.json"
#: How it names the parts of a Tuple.
TUPLE_ITEM = "_index_"

_EPISODE = re.compile(r"episode_(\d+)")


class MinariFolder:
    """A dataset as Minari keeps it on disk, read without Minari.

    Each episode is a group of `observations` `[T + 1, ...]`, `actions`
    `[T, ...]`, `rewards`, `terminations` and `truncations` `[T]`; a group in
    the place of an array is a dict or tuple of them. Infos are not read.

    Args:
        path: path. The folder of the dataset, or `data` within it.
        episodes: Sequence of int or None. Numbers of the episodes to read;
            None for all. Defaults to `None`.

    Raises:
        ValueError: If files are missing or damaged, refer to others, hold
            objects, or an episode's arrays do not fit together.
    """

    def __init__(
        self, path: Path, episodes: Sequence[int] | None = None
    ) -> None:
        folder = path if (path / MAIN_FILE).exists() else path / "data"
        self.name = str(path)
        metadata = read_metadata(folder / METADATA_FILE)
        self.observation_space = metadata["observation_space"]
        self.action_space = metadata["action_space"]
        try:
            self._file = h5py.File(folder / MAIN_FILE, "r")
        except OSError as error:
            raise ValueError(
                f"Expected a whole HDF5 file {folder / MAIN_FILE}. "
                f"Received: {error}"
            ) from error
        self._root = self._file["/"].id
        try:
            self._groups = self._find(episodes)
            self._scan()
        except BaseException:
            self._file.close()
            raise

    def _find(self, episodes: Sequence[int] | None) -> list[str]:
        """Returns the names of the episodes."""
        found = {
            int(match[1]): match[0]
            for match in map(_EPISODE.fullmatch, hdf5_arrays.names(self._root))
            if match
        }
        wanted = sorted(found) if episodes is None else [*map(int, episodes)]
        missing = [number for number in wanted if number not in found]
        if missing or not wanted:
            raise ValueError(
                f"Expected groups `episode_0` and so on in {self.name}. "
                f"Received: {len(found)} episodes"
                f"{f', without {missing[:5]}' if missing else ''}"
            )
        return [found[number] for number in wanted]

    def _scan(self) -> None:
        """Reads how long episodes are, what they returned, what they hold."""
        lengths, returns = [], []
        for number in range(len(self._groups)):
            reward = self._told(number, self._rewards)
            lengths.append(len(reward))
            returns.append(reward.sum(dtype=np.float64))
        self.lengths = np.array(lengths, np.int64)
        self.returns = np.array(returns, np.float64)
        self._observation = self._told(0, lambda g: _form(g, "observations"))
        self._action = self._told(0, lambda g: _form(g, "actions"))
        self.row_bytes = 6 + sum(
            int(np.prod(leaf.shape, dtype=np.int64)) * leaf.dtype.itemsize
            for form in (self._observation, self._action)
            for leaf in leaves(form)
        )

    def _told(self, number: int, function: Callable[[Any], Any]) -> Any:
        """Reads of an episode, and names it where that fails."""
        name = self._groups[number]
        try:
            group = hdf5_arrays.open_member(self._root, name)
            return function(group)
        except (Hdf5Error, OSError, RuntimeError, KeyError, TypeError) as error:
            raise ValueError(
                "Expected an episode as Minari writes it. Received: "
                f"{name} of {self.name} with {error}"
            ) from error

    def _rewards(self, group: Any) -> np.ndarray:
        """Reads the rewards of an episode, and checks the ends beside them."""
        reward = hdf5_arrays.open_member(group, "rewards")
        if len(reward.shape) != 1 or not reward.shape[0]:
            raise Hdf5Error(f"rewards of shape {reward.shape}, not [T]")
        for key in ("terminations", "truncations"):
            flags = hdf5_arrays.open_member(group, key)
            if flags.shape != reward.shape:
                raise Hdf5Error(
                    f"{key} of shape {flags.shape} beside rewards of shape "
                    f"{reward.shape}"
                )
        numbers = np.empty(reward.shape, np.float32)
        hdf5_arrays.read(reward, 0, numbers)
        if not np.isfinite(numbers).all():
            raise Hdf5Error("rewards that are not finite")
        return numbers

    def read(self, pieces: np.ndarray) -> EpisodeRows:
        """Reads pieces of episodes; see `EpisodeSource`."""
        starts, count = piece_starts(pieces)
        episode, first, stop = pieces.T
        arrays = _Arrays(self._observation, self._action, count)
        for number, row, begin, end in zip(
            episode.tolist(),
            starts.tolist(),
            first.tolist(),
            stop.tolist(),
            strict=True,
        ):
            self._told(
                number,
                functools.partial(
                    arrays.fill,
                    row=row,
                    begin=begin,
                    end=end,
                    length=int(self.lengths[number]),
                ),
            )
        return EpisodeRows(
            observation=arrays.observation,
            action=arrays.action,
            reward=arrays.scalars["rewards"],
            terminated=arrays.scalars["terminations"],
            truncated=arrays.scalars["truncations"],
            episode=episode,
            first=first,
            start=starts,
            steps=stop - first,
        )

    def close(self) -> None:
        """Closes the file, when nothing more is to be read."""
        self._file.close()


class _Leaf:
    """Where an array lies within an episode, and what its rows are like."""

    def __init__(
        self, path: tuple[str, ...], shape: tuple[int, ...], dtype: Any
    ) -> None:
        self.path = path
        self.shape = shape
        # As observations are stored.
        self.dtype = np.dtype(np.float32 if dtype == np.float64 else dtype)


class _Arrays:
    """What pieces of episodes are read into, one after the other."""

    def __init__(
        self, observation: Tree[_Leaf], action: Tree[_Leaf], count: int
    ) -> None:
        def zeros(leaf: _Leaf) -> np.ndarray:
            return np.zeros((count, *leaf.shape), leaf.dtype)

        self.observation = map_leaves(zeros, observation)
        self.action = map_leaves(zeros, action)
        self.scalars = {
            "rewards": np.zeros(count, np.float32),
            "terminations": np.zeros(count, np.bool_),
            "truncations": np.zeros(count, np.bool_),
        }
        # Of an episode there is one observation more.
        self._parts = [
            *(
                (leaf.path, out, 1)
                for leaf, out in zip(
                    leaves(observation), leaves(self.observation), strict=True
                )
            ),
            *(
                (leaf.path, out, 0)
                for leaf, out in zip(
                    leaves(action), leaves(self.action), strict=True
                )
            ),
        ]

    def fill(
        self, group: Any, row: int, begin: int, end: int, length: int
    ) -> None:
        """Reads steps of an episode into rows."""
        for path, out, more in self._parts:
            array = _open(group, path)
            _check_shape(array, path, out, length + more)
            rows = slice(row, row + end - begin + more)
            hdf5_arrays.read(array, begin, out[rows])
        for key, out in self.scalars.items():
            array = hdf5_arrays.open_member(group, key)
            part = np.empty(end - begin, array.dtype)
            hdf5_arrays.read(array, begin, part)
            out[row : row + end - begin] = part


def _form(group: Any, *path: str) -> Tree[_Leaf]:
    """Returns what lies at a place, as a tree."""
    found = hdf5_arrays.open_member(group, path[-1])
    if isinstance(found, h5py.h5d.DatasetID):
        if not found.shape:
            raise Hdf5Error(f"{'/'.join(path)} of no length")
        return _Leaf(path, found.shape[1:], found.dtype)
    return _form_of_group(found, path)


def _form_of_group(group: Any, path: tuple[str, ...]) -> Tree[_Leaf]:
    """Returns a dict, or a tuple where the names are those of one."""
    keys = hdf5_arrays.names(group)
    if not keys:
        raise Hdf5Error(f"{'/'.join(path)} with nothing in it")
    counted = [f"{TUPLE_ITEM}{index}" for index in range(len(keys))]
    inner = {key: _form(group, *path, key) for key in keys}
    if sorted(keys) == sorted(counted):
        return tuple(inner[key] for key in counted)
    return inner


def _open(group: Any, path: tuple[str, ...]) -> Any:
    """Opens an array of an episode."""
    for name in path:
        group = hdf5_arrays.open_member(group, name)
    if not isinstance(group, h5py.h5d.DatasetID):
        raise Hdf5Error(f"a group {'/'.join(path)}, an array elsewhere")
    return group


def _check_shape(
    array: Any, path: tuple[str, ...], out: np.ndarray, length: int
) -> None:
    """Refuses an array that is not as those of the first episode."""
    expected = (length, *out.shape[1:])
    if array.shape != expected or array.dtype.kind != out.dtype.kind:
        raise Hdf5Error(
            f"{'/'.join(path)} of shape {array.shape} and dtype {array.dtype}, "
            f"not {expected} and {out.dtype}"
        )
