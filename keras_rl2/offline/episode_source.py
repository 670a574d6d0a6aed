"""Recorded episodes in any form, read piece by piece."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import Protocol
from typing import TypeAlias

import gymnasium
import numpy as np

from keras_rl2.data.replay import ReplayDataset
from keras_rl2.offline.array_source import ArraySource
from keras_rl2.offline.episode_rows import EpisodeRows
from keras_rl2.offline.minari_folder import MAIN_FILE
from keras_rl2.offline.minari_folder import MinariFolder
from keras_rl2.spaces.trees import map_leaves


class EpisodeSource(Protocol):
    """Recorded episodes, read piece by piece.

    Attributes:
        name: str. The name of the source in error messages.
        observation_space: `gymnasium.Space` or None if the source has none.
        action_space: `gymnasium.Space` or None, likewise.
        lengths: `[E]` int64. Transitions of each episode.
        returns: `[E]` float64. Sum of the rewards of each episode.
        row_bytes: int. Bytes of one step in memory.
    """

    name: str
    observation_space: gymnasium.Space[Any] | None
    action_space: gymnasium.Space[Any] | None
    lengths: np.ndarray
    returns: np.ndarray
    row_bytes: int

    def read(self, pieces: np.ndarray) -> EpisodeRows:
        """Reads pieces of episodes.

        Args:
            pieces: `[P, 3]` int64. Episode, first step, and the step to stop
                at.

        Returns:
            `EpisodeRows`.

        Raises:
            ValueError: If the data in them is damaged.
        """

    def close(self) -> None:
        """Closes files or frees arrays, when nothing more is to be read."""


class MinariDataset(Protocol):
    """A `minari.MinariDataset`, which has files of its own."""

    @property
    def storage(self) -> Any:
        """Its files, with `data_path`."""

    @property
    def episode_indices(self) -> Any:
        """Its episodes, by their numbers in the files."""


#: Recorded episodes as users pass them; see `OfflineDataset`.
GivenSource: TypeAlias = (
    str
    | os.PathLike[str]
    | Mapping[str, Any]
    | ReplayDataset
    | EpisodeSource
    | MinariDataset
)


def open_source(source: Any) -> EpisodeSource:
    """Opens recorded episodes.

    Args:
        source: See `keras_rl2.OfflineDataset`.

    Returns:
        `EpisodeSource`.

    Raises:
        ValueError: If `source` is of no supported form.
    """
    if isinstance(source, (ArraySource, MinariFolder)):
        return source
    if isinstance(source, ReplayDataset):
        return _open_replay(source)
    if isinstance(source, Mapping):
        return ArraySource(source, "the arrays")
    if isinstance(source, (str, os.PathLike)):
        return _open_path(Path(source))
    if hasattr(source, "iterate_episodes") and hasattr(source, "storage"):
        return MinariFolder(
            Path(source.storage.data_path), [*source.episode_indices]
        )
    raise ValueError(
        "Expected a dict of arrays, the path of an .npz file, of a folder of "
        ".npy files or of a Minari dataset, a `minari.MinariDataset`, or a "
        f"`keras_rl2.ReplayDataset`. Received: {source!r}"
    )


def _open_path(path: Path) -> EpisodeSource:
    """Opens a file or folder, detecting its form from the content."""
    if path.is_dir() and (files := [*path.glob("*.npy")]):
        arrays = {each.stem: _load(each, mmap_mode="r") for each in files}
        return ArraySource(_nested(arrays), str(path))
    if path.is_file() and path.suffix == ".npz":
        return ArraySource(_nested(_load(path)), str(path))
    if any((path / part / MAIN_FILE).is_file() for part in ("", "data")):
        return MinariFolder(path)
    raise ValueError(
        "Expected the path of an .npz file, of a folder of .npy files, or of a "
        f"Minari dataset with data/main_data.hdf5. Received: {path} "
        f"({'none of these' if path.exists() else 'which does not exist'})"
    )


def _load(path: Path, **kwargs: Any) -> Any:
    """Loads arrays, without pickle."""
    try:
        found = np.load(path, allow_pickle=False, **kwargs)
        return dict(found) if path.suffix == ".npz" else found
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"Expected arrays of numbers in {path}. Received: {error}"
        ) from error


def _nested(arrays: dict[str, Any]) -> Any:
    """Makes trees of arrays with dots in their names, and tuples of numbers."""
    tree: dict[str, Any] = {}
    for key, array in arrays.items():
        name, _, rest = key.partition(".")
        if rest:
            tree.setdefault(name, {})[rest] = array
        else:
            tree[name] = array
    tree = {
        name: _nested(each) if isinstance(each, dict) else each
        for name, each in tree.items()
    }
    counted = [str(index) for index in range(len(tree))]
    if sorted(tree) == sorted(counted):
        return tuple(tree[name] for name in counted)
    return tree


def _open_replay(replay: ReplayDataset) -> EpisodeSource:
    """Returns the current content of a replay buffer."""
    if replay.buffer is None or replay.agent is None:
        raise ValueError(
            "Expected a ReplayDataset with stored transitions: `fit` an "
            "agent with it, or call `bind(agent)` and `fill(steps)`. "
            "Received: no buffer"
        )
    arrays = replay.buffer.record()
    taken = replay.agent.policy_head.to_environment(arrays["actions"])
    arrays["actions"] = map_leaves(np.asarray, taken)
    return ArraySource(
        arrays,
        f"the replay of {replay.env.name}",
        replay.env.observation_space,
        replay.env.action_space,
    )
