"""Episodes in the folder of a Minari dataset."""

import contextlib
import dataclasses
import json
import re
from collections.abc import Iterator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import numpy as np

from keras_rl2.files import hdf5_arrays
from keras_rl2.files.hdf5_arrays import Hdf5Error
from keras_rl2.files.plain_files import read_json
from keras_rl2.offline.episode_rows import EpisodeRows
from keras_rl2.offline.episode_rows import piece_starts
from keras_rl2.offline.episode_rows import stored_dtype
from keras_rl2.spaces.space_configs import space_from_config
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

#: The files of Minari: the episodes, and a description of them.
MAIN_FILE = "main_data.hdf5"
METADATA_FILE = "metadata.json"
#: The names that Minari gives to the parts of a Tuple, and to the spaces
#: within a space.
TUPLE_ITEM = "_index_"
SUBSPACES = "subspaces"

_EPISODE = re.compile(r"episode_(\d+)")
# Bounds of images are written one by one.
_MOST_BYTES = 2**26


class MinariFolder:
    """A dataset in Minari's format on disk, read without Minari.

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
        self.observation_space, self.action_space = _read_spaces(
            folder / METADATA_FILE
        )
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
        """Reads the rewards of all episodes, and the structure of the first."""
        rewards = []
        for number in range(len(self._groups)):
            with self._episode(number) as group:
                rewards.append(_rewards(group))
        self.lengths = np.array([*map(len, rewards)], np.int64)
        self.returns = np.array(
            [reward.sum(dtype=np.float64) for reward in rewards], np.float64
        )
        with self._episode(0) as group:
            observation = _columns(group, "observations", more=1)
            action = _columns(group, "actions", more=0)
        flags = np.dtype(np.bool_)
        #: Tree of `_Column`, with the names of `EpisodeRows`.
        self._rows = {
            "observation": observation,
            "action": action,
            "reward": _Column("rewards", (), np.dtype(np.float32)),
            "terminated": _Column("terminations", (), flags),
            "truncated": _Column("truncations", (), flags),
        }
        self.row_bytes = sum(each.row_bytes for each in leaves(self._rows))

    @contextlib.contextmanager
    def _episode(self, number: int) -> Iterator[Any]:
        """Opens an episode; errors within the block name it."""
        name = self._groups[number]
        try:
            yield hdf5_arrays.open_member(self._root, name)
        except (Hdf5Error, OSError, RuntimeError, KeyError, TypeError) as error:
            raise ValueError(
                "Expected an episode as Minari writes it. Received: "
                f"{name} of {self.name} with {error}"
            ) from error

    def read(self, pieces: np.ndarray) -> EpisodeRows:
        """Reads pieces of episodes; see `EpisodeSource`."""
        starts, count = piece_starts(pieces)
        episode, first, stop = pieces.T
        rows: dict[str, Any] = map_leaves(
            lambda column: np.zeros((count, *column.shape), column.dtype),
            self._rows,
        )
        arrays = [*zip(leaves(self._rows), leaves(rows), strict=True)]
        for start, (number, begin, end) in zip(
            starts.tolist(), pieces.tolist(), strict=True
        ):
            length = int(self.lengths[number])
            with self._episode(number) as group:
                for column, out in arrays:
                    part = column.read(group, begin, end, length)
                    out[start : start + len(part)] = part
        return EpisodeRows(
            **rows,
            episode=episode,
            first=first,
            start=starts,
            steps=stop - first,
        )

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


@dataclasses.dataclass(frozen=True)
class _Column:
    """An array that each episode has.

    Attributes:
        path: str. Path of the array within an episode.
        shape: tuple of int. Of one row.
        dtype: NumPy dtype. As it is held in memory.
        kind: str. The kind of dtype in the file; empty for any.
        more: int. Rows beyond the number of steps: 1 for observations.
    """

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    kind: str = ""
    more: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in memory."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def read(
        self, group: h5py.h5g.GroupID, begin: int, end: int, length: int
    ) -> np.ndarray:
        """Reads the rows of some steps of an episode of a given length."""
        array = hdf5_arrays.open_member(group, self.path)
        if not isinstance(array, h5py.h5d.DatasetID):
            raise Hdf5Error(f"a group {self.path}, an array elsewhere")
        shape = (length + self.more, *self.shape)
        if array.shape != shape or self.kind not in ("", array.dtype.kind):
            raise Hdf5Error(
                f"{self.path} of shape {array.shape} and dtype {array.dtype}, "
                f"not {shape} and {self.dtype}"
            )
        return hdf5_arrays.read(array, begin, end + self.more)


def _columns(group: h5py.h5g.GroupID, path: str, more: int) -> Tree[_Column]:
    """Returns the arrays at a place of an episode, as a tree."""
    found = hdf5_arrays.open_member(group, path)
    if isinstance(found, h5py.h5d.DatasetID):
        if not found.shape:
            raise Hdf5Error(f"{path} of no length")
        dtype = found.dtype
        return _Column(
            path, found.shape[1:], stored_dtype(dtype), dtype.kind, more
        )
    inner = {
        key: _columns(group, f"{path}/{key}", more)
        for key in hdf5_arrays.names(found)
    }
    if not inner:
        raise Hdf5Error(f"{path} with nothing in it")
    counted = [f"{TUPLE_ITEM}{index}" for index in range(len(inner))]
    if sorted(inner) == sorted(counted):
        return tuple(inner[key] for key in counted)
    return inner


def _rewards(group: h5py.h5g.GroupID) -> np.ndarray:
    """Reads the rewards of an episode, and checks its flags."""
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
    numbers = hdf5_arrays.read(reward).astype(np.float32)
    if not np.isfinite(numbers).all():
        raise Hdf5Error("rewards that are not finite")
    return numbers


def _read_spaces(path: Path) -> list[gymnasium.Space[Any] | None]:
    """Reads the two spaces in `metadata.json`; None for a missing one."""
    try:
        metadata = read_json(path, _MOST_BYTES)
        if not isinstance(metadata, dict):
            raise ValueError(f"a {type(metadata).__name__}")
    except (OSError, ValueError) as error:
        raise ValueError(
            "Expected a metadata.json as Minari writes it. Received: "
            f"{path} ({error})"
        ) from error
    found: list[gymnasium.Space[Any] | None] = []
    for key in ("observation_space", "action_space"):
        text = metadata.get(key)
        try:
            given = json.loads(text) if isinstance(text, str) else text
            found.append(
                None if given is None else space_from_config(_config(given))
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ValueError(
                "Expected a space of a kind that agents support as "
                f"{key} of {path}. Received: {error}"
            ) from error
    return found


def _config(given: Any) -> Any:
    """Converts a space written by Minari into the library's own config."""
    kind = given.get("type") if isinstance(given, dict) else None
    if kind == "Dict":
        inner = given[SUBSPACES].items()
        return {"type": kind, "spaces": {k: _config(v) for k, v in inner}}
    if kind == "Tuple":
        return {"type": kind, "spaces": [*map(_config, given[SUBSPACES])]}
    if kind == "MultiBinary":
        return {"type": kind, "shape": np.atleast_1d(given["n"]).tolist()}
    return given
