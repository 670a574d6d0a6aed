"""Reading recorded episodes from arrays, files and replay; writing them."""

import os
import re
import zipfile
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
from keras_rl2.spaces.trees import leaves
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
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = dict(file)
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"Expected arrays of numbers in {path}. Received: {error}"
            ) from error
        return episodes_of_arrays(arrays, str(path))
    for folder in (path, path / "data"):
        if (folder / "main_data.hdf5").is_file():
            try:
                storage = _import_storage().read(folder)
                return _read_minari(storage, range(storage.total_episodes))
            except ImportError:
                raise
            # Of any type, by what is missing in it.
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
    taken = replay.agent.policy_head.to_environment(arrays["actions"])
    arrays["actions"] = map_leaves(np.asarray, taken)
    return episodes_of_arrays(
        arrays,
        f"the replay of {replay.env.name}",
        replay.env.observation_space,
        replay.env.action_space,
    )


def _read_minari(storage: Any, episodes: Iterable[int]) -> Episodes:
    """Reads episodes of Minari's storage by their numbers."""
    parts: dict[str, list[Any]] = {
        key: []
        for key in (
            *("observations", "actions", "rewards"),
            *("terminations", "truncations"),
        )
    }
    for episode in storage.get_episodes(episodes):
        steps = len(episode["rewards"])
        for key, read in parts.items():
            counts = {*map(len, leaves(episode[key]))}
            if counts != {steps + (key == "observations")}:
                raise ValueError(
                    f"{key} of {counts} steps in episode {episode['id']} of "
                    f"{steps} steps"
                )
            read.append(map_leaves(compact, episode[key]))
    rewards = parts["rewards"]
    joined = {
        key: map_leaves(lambda *each: np.concatenate(each), *read)
        for key, read in parts.items()
    }
    return Episodes(
        name=str(storage.data_path),
        lengths=np.array([*map(len, rewards)], np.int64),
        returns=np.array([np.sum(each, dtype=float) for each in rewards]),
        observation=joined["observations"],
        action=joined["actions"],
        reward=joined["rewards"].astype(np.float32),
        terminated=joined["terminations"].astype(np.bool_),
        truncated=joined["truncations"].astype(np.bool_),
        observation_space=storage.observation_space,
        action_space=storage.action_space,
    )


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

    assert episodes.observation_space is not None
    assert episodes.action_space is not None
    seen = space_tree(episodes.observation_space)
    taken = space_tree(episodes.action_space)
    stops = np.cumsum(episodes.lengths).tolist()
    for number, (length, stop) in enumerate(
        zip(episodes.lengths.tolist(), stops, strict=True)
    ):
        step = slice(stop - length, stop)
        row = slice(stop - length + number, stop + number + 1)
        yield EpisodeBuffer(
            observations=map_leaves(
                lambda space, a, row=row: a[row].astype(space.dtype),
                seen,
                episodes.observation,
            ),
            actions=map_leaves(
                lambda space, a, step=step: a[step].astype(space.dtype),
                taken,
                episodes.action,
            ),
            rewards=episodes.reward[step],
            terminations=episodes.terminated[step],
            truncations=episodes.truncated[step],
        )
