"""Episodes in the folder of a Minari dataset."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import numpy as np

from keras_rl2.offline.episode_rows import EpisodeRows
from keras_rl2.offline.episode_rows import piece_starts
from keras_rl2.offline.episode_rows import stored_dtype
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves

#: The file of the episodes.
MAIN_FILE = "main_data.hdf5"


class MinariFolder:
    """A dataset in Minari's format on disk, whose rows h5py reads.

    Args:
        path: path. The folder of the dataset, or `data` within it.
        episodes: Sequence of int or None. Numbers of the episodes to read;
            None for all. Defaults to `None`.

    Raises:
        ImportError: If Minari is not installed.
        ValueError: If files are missing or damaged, hold no numbers, or an
            episode's arrays do not fit together.
    """

    def __init__(
        self, path: Path, episodes: Sequence[int] | None = None
    ) -> None:
        storage = import_storage()
        folder = path if (path / MAIN_FILE).exists() else path / "data"
        self.name = str(path)
        try:
            found = storage.read(folder)
            self._file = h5py.File(folder / MAIN_FILE, "r")
        # Of any type, by what is missing in its metadata.
        except Exception as error:
            raise ValueError(
                f"Expected a whole Minari dataset in {path}. "
                f"Received: {type(error).__name__}: {error}"
            ) from error
        self.observation_space = found.observation_space
        self.action_space = found.action_space
        if episodes is None:
            episodes = range(found.total_episodes)
        self._episodes = episodes
        if not len(episodes):
            raise ValueError(f"Expected episodes in {path}. Received: none")
        self._paths: dict[str, Any] = {
            "observation": _paths(self.observation_space, "observations"),
            "action": _paths(self.action_space, "actions"),
            "reward": "rewards",
            "terminated": "terminations",
            "truncated": "truncations",
        }
        rewards = [
            self._array(number, "rewards")[()]
            for number in range(len(self._episodes))
        ]
        self.lengths = np.array([*map(len, rewards)], np.int64)
        self.returns = np.array([np.sum(each, dtype=float) for each in rewards])
        row = leaves(self._empty_rows(1))
        self.row_bytes = sum(each.nbytes for each in row)

    def _array(self, number: int, path: str) -> Any:
        """Returns an array of an episode, in its file."""
        name = f"episode_{self._episodes[number]}/{path}"
        found = self._file.get(name)
        is_array = isinstance(found, h5py.Dataset)
        if not is_array or found.dtype.kind not in "biuf":
            raise ValueError(
                f"Expected an array of numbers {name} in {self.name} (of "
                f"pictures, with `jpeg_encoding=False`). Received: {found}"
            )
        return found

    def _empty_rows(self, count: int) -> Any:
        """Returns arrays of zeros for a number of rows, as a tree."""

        def empty(path: str) -> np.ndarray:
            array = self._array(0, path)
            dtype = stored_dtype(array.dtype)
            return np.zeros((count, *array.shape[1:]), dtype)

        return map_leaves(empty, self._paths)

    def read(self, pieces: np.ndarray) -> EpisodeRows:
        """Reads pieces of episodes; see `EpisodeSource`."""
        starts, count = piece_starts(pieces)
        episode, first, stop = pieces.T
        rows = self._empty_rows(count)
        for path, out in zip(leaves(self._paths), leaves(rows), strict=True):
            # There is an observation after the last step.
            more = path.startswith("observations")
            for start, (number, begin, end) in zip(
                starts.tolist(), pieces.tolist(), strict=True
            ):
                part = self._array(number, path)[begin : end + more]
                if len(part) != end - begin + more:
                    raise ValueError(
                        f"Expected {path} of all steps. Received: fewer in "
                        f"episode {number} of {self.name}"
                    )
                out[start : start + len(part)] = part
        return EpisodeRows(
            observation=rows["observation"],
            action=rows["action"],
            reward=rows["reward"].astype(np.float32),
            terminated=rows["terminated"].astype(np.bool_),
            truncated=rows["truncated"].astype(np.bool_),
            episode=episode,
            first=first,
            start=starts,
            steps=stop - first,
        )

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def import_storage() -> Any:
    """Returns Minari's class of datasets on disk."""
    try:
        from minari.dataset.minari_storage import MinariStorage
    except ImportError as error:
        raise ImportError(
            "Expected minari, which reads and writes recorded episodes: `pip "
            "install keras-rl2-fit[minari]`. Received: a Python without it"
        ) from error
    return MinariStorage


def _paths(space: gymnasium.Space[Any], path: str) -> Any:
    """Returns the places of a space's arrays within an episode, as a tree."""
    if isinstance(space, gymnasium.spaces.Dict):
        inner = space.items()
        return {key: _paths(each, f"{path}/{key}") for key, each in inner}
    if isinstance(space, gymnasium.spaces.Tuple):
        return tuple(
            _paths(each, f"{path}/_index_{index}")
            for index, each in enumerate(space)
        )
    return path
