"""Episodes in the folder of a Minari dataset: reading and writing."""

import re
from collections.abc import Iterable
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import numpy as np
from gymnasium.envs.registration import EnvSpec

from keras_rl2.basics.arguments import given_or
from keras_rl2.offline.episode_rows import EpisodeRows
from keras_rl2.offline.episode_rows import check_actions
from keras_rl2.offline.episode_rows import stacked
from keras_rl2.saving.atomic_files import replacing
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import map_leaves

#: The file of the episodes.
MAIN_FILE = "main_data.hdf5"


class MinariFolder:
    """A dataset in Minari's format on disk, whose rows h5py reads.

    Args:
        path: path. The folder `data` of the dataset.
        episodes: Sequence of int or None. Numbers of the episodes to read;
            None for all. Defaults to `None`.

    Attributes:
        lengths: `[E]` int64. Transitions of each episode.
        returns: `[E]` float64. Sum of the rewards of each episode.

    Raises:
        ValueError: If files are damaged, or hold no numbers.
    """

    def __init__(
        self, path: Path, episodes: Sequence[int] | None = None
    ) -> None:
        storage = _import_storage()
        self.name = str(path)
        try:
            found = storage.read(path)
            self._file = h5py.File(path / MAIN_FILE, "r")
        # Of any type, by what is missing in its metadata.
        except Exception as error:
            raise ValueError(
                f"Expected a whole Minari dataset in {path}. "
                f"Received: {type(error).__name__}: {error}"
            ) from error
        self.observation_space = found.observation_space
        self.action_space = found.action_space
        self._episodes = given_or(episodes, range(found.total_episodes))
        self._paths = {
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

    def read(self, pieces: np.ndarray) -> EpisodeRows:
        """Reads pieces of episodes, `[P, 3]` int64; see `EpisodeRows`."""

        def rows_of(path: str) -> np.ndarray:
            # There is an observation after the last step.
            more = path.startswith("observations")

            def part(number: int, first: int, stop: int) -> np.ndarray:
                found = self._array(number, path)[first : stop + more]
                if len(found) != stop - first + more:
                    raise ValueError(
                        f"Expected {path} of all steps. Received: fewer in "
                        f"episode {number} of {self.name}"
                    )
                return found

            return stacked(pieces, part)

        rows = map_leaves(rows_of, self._paths)
        return EpisodeRows(
            pieces=pieces,
            observation=rows["observation"],
            action=rows["action"],
            reward=rows["reward"].astype(np.float32),
            terminated=rows["terminated"].astype(np.bool_),
            truncated=rows["truncated"].astype(np.bool_),
        )

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _import_storage() -> Any:
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


def check_new(path: Path) -> None:
    """Raises an error for a folder that is not empty, or without Minari."""
    _import_storage()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(
            "Expected a folder that is new, or empty, for a dataset: pass "
            "another path, or read the existing data with OfflineDataset. "
            f"Received: {path}, which exists"
        )


def write_minari(
    episodes: Iterable[EpisodeRows],
    observation_space: gymnasium.Space[Any],
    action_space: gymnasium.Space[Any],
    path: Path,
    env_spec: object,
) -> None:
    """Writes a dataset atomically.

    Args:
        episodes: Iterable of `EpisodeRows`, each of one whole episode.
        observation_space: `gymnasium.Space`.
        action_space: `gymnasium.Space`.
        path: path. A new folder. Minari finds it by its name, if that ends in
            a version, e.g. `-v0`.
        env_spec: `gymnasium.envs.registration.EnvSpec`. Specifies the
            environment of the recording; anything else is left out.
    """
    import minari
    from minari.data_collector import EpisodeBuffer

    def buffer(rows: EpisodeRows) -> EpisodeBuffer:
        check_actions(rows, action_space, str(path))
        # An interrupted episode counts as truncated for readers.
        truncated = rows.truncated[:-1].copy()
        truncated[-1] |= not rows.terminated[-2]
        return EpisodeBuffer(
            observations=_declared(observation_space, rows.observation),
            actions=map_leaves(
                lambda array: array[:-1], _declared(action_space, rows.action)
            ),
            rewards=rows.reward[:-1],
            terminations=rows.terminated[:-1],
            truncations=truncated,
        )

    path.parent.mkdir(parents=True, exist_ok=True)
    plain = re.sub(r"[^-\w]", "_", path.name)
    versioned = re.search(r"-v\d+$", plain)
    with replacing(path) as unfinished:
        unfinished.mkdir()
        storage = _import_storage().new(
            unfinished / "data",
            observation_space,
            action_space,
            env_spec if isinstance(env_spec, EnvSpec) else None,
            # Images are written as plain numbers.
            jpeg_encoding=False,
        )
        storage.update_episodes(map(buffer, episodes))
        storage.update_metadata(
            {
                "dataset_id": plain if versioned else f"{plain}-v0",
                "minari_version": minari.__version__,
            }
        )


def _declared(space: gymnasium.Space[Any], tree: Tree[np.ndarray]) -> Any:
    """Returns arrays with the dtypes of their spaces."""
    return map_leaves(
        lambda each, array: array.astype(each.dtype, copy=False),
        space_tree(space),
        tree,
    )
