"""Reading recorded episodes from arrays, files and replay; writing them."""

import os
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeAlias
from typing import Union

import numpy as np
from gymnasium.envs.registration import EnvSpec

from keras_rl2.data.replay import ReplayDataset
from keras_rl2.offline.episodes import Episodes
from keras_rl2.offline.episodes import compact
from keras_rl2.offline.episodes import episodes_of_arrays
from keras_rl2.saving.atomic_files import replacing
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import map_leaves

if TYPE_CHECKING:
    from minari import MinariDataset

#: Recorded episodes as users pass them; see `OfflineDataset`.
GivenSource: TypeAlias = Union[
    str,
    os.PathLike[str],
    Mapping[str, Any],
    ReplayDataset,
    Episodes,
    "MinariDataset",
]


def read_episodes(source: GivenSource) -> Episodes:
    """Reads recorded episodes; see `keras_rl2.OfflineDataset`."""
    if isinstance(source, Episodes):
        return source
    if isinstance(source, ReplayDataset):
        return _read_replay(source)
    if isinstance(source, Mapping):
        return episodes_of_arrays(source, "the arrays")
    if isinstance(source, str | os.PathLike):
        return _read_path(Path(source))
    if hasattr(source, "episode_indices") and hasattr(source, "storage"):
        return _read_minari(source.storage, source.episode_indices)
    raise ValueError(
        "Expected a dict of arrays, the path of an .npz file or of a Minari "
        "dataset, a `minari.MinariDataset`, or a `keras_rl2.ReplayDataset`. "
        f"Received: {source!r}"
    )


def _read_path(path: Path) -> Episodes:
    """Reads an .npz file, or the folder of a Minari dataset."""
    if path.is_file() and path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as file:
            return episodes_of_arrays(file, str(path))
    for folder in (path, path / "data"):
        if (folder / "main_data.hdf5").is_file():
            try:
                storage = _import_storage().read(folder)
                return _read_minari(storage, range(storage.total_episodes))
            except ImportError:
                raise
            # The type of the error depends on what is missing in it.
            except Exception as error:
                raise ValueError(
                    f"Expected a whole Minari dataset in {folder}. "
                    f"Received: {type(error).__name__}: {error}"
                ) from error
    raise ValueError(
        "Expected the path of an .npz file, or of a Minari dataset with "
        f"data/main_data.hdf5. Received: {path} "
        f"({'none of these' if path.exists() else 'which does not exist'})"
    )


def _read_replay(replay: ReplayDataset) -> Episodes:
    """Returns the current content of a replay buffer."""
    if replay.buffer is None or replay.agent is None:
        raise ValueError(
            "Expected a ReplayDataset with stored transitions: `fit` an "
            "agent with it, or call `bind(agent)` and `fill(steps)`. "
            "Received: no buffer"
        )
    arrays = replay.buffer.record()
    head = replay.agent.policy.head
    arrays["actions"] = map_leaves(
        np.asarray, head.to_environment(arrays["actions"])
    )
    return episodes_of_arrays(
        arrays,
        f"the replay of {replay.env.name}",
        replay.env.observation_space,
        replay.env.action_space,
    )


def _read_minari(storage: Any, episodes: Iterable[int]) -> Episodes:
    """Reads episodes of Minari's storage by their numbers."""
    parts = []
    for episode in storage.get_episodes(episodes):
        tree, ends = episode["observations"], episode["truncations"].copy()
        ends[-1] |= not episode["terminations"][-1]
        parts.append(
            {
                "observations": map_leaves(lambda a: compact(a[:-1]), tree),
                "next_observations": map_leaves(lambda a: compact(a[1:]), tree),
                "actions": episode["actions"],
                "rewards": episode["rewards"],
                "terminations": episode["terminations"],
                "truncations": ends,
            }
        )
    return episodes_of_arrays(
        map_leaves(lambda *each: np.concatenate(each), *parts),
        str(storage.data_path),
        storage.observation_space,
        storage.action_space,
    )


def _import_storage() -> Any:
    """Returns Minari's class of datasets on disk."""
    from minari.dataset.minari_storage import MinariStorage

    return MinariStorage


def check_new(path: Path) -> None:
    """Raises an error for a folder that is not empty, or without Minari."""
    _import_storage()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(
            "Expected a folder that is new, or empty, for a dataset: pass "
            "another path, or read the existing data with OfflineDataset. "
            f"Received: {path}, which exists"
        )


def write_minari(episodes: Episodes, path: Path, env_spec: object) -> None:
    """Writes a dataset atomically."""
    import minari

    path.parent.mkdir(parents=True, exist_ok=True)
    plain = re.sub(r"[^-\w]", "_", path.name)
    versioned = re.search(r"-v\d+$", plain)
    with replacing(path) as unfinished:
        unfinished.mkdir()
        storage = _import_storage().new(
            unfinished / "data",
            episodes.observation_space,
            episodes.action_space,
            env_spec if isinstance(env_spec, EnvSpec) else None,
            # Images are written as plain numbers.
            jpeg_encoding=False,
        )
        storage.update_episodes(_buffers(episodes))
        storage.update_metadata(
            {
                "dataset_id": plain if versioned else f"{plain}-v0",
                "minari_version": minari.__version__,
            }
        )


def _buffers(episodes: Episodes) -> Iterator[Any]:
    """Yields each episode in Minari's form, with the dtypes of the spaces."""
    from minari.data_collector import EpisodeBuffer

    stops = np.cumsum(episodes.lengths).tolist()
    for number, stop in enumerate(stops):
        step = slice(stop - int(episodes.lengths[number]), stop)
        row = slice(step.start + number, stop + number + 1)
        yield EpisodeBuffer(
            observations=_rows(
                episodes.observation_space, episodes.observation, row
            ),
            actions=_rows(episodes.action_space, episodes.action, step),
            rewards=episodes.reward[step],
            terminations=episodes.terminated[step],
            truncations=episodes.truncated[step],
        )


def _rows(space: Any, tree: Any, rows: slice) -> Any:
    """Returns rows of a tree, with the dtypes of its space."""
    return map_leaves(
        lambda space, array: array[rows].astype(space.dtype),
        space_tree(space),
        tree,
    )
