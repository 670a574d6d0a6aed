"""Writing episodes in the format of Minari."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from keras_rl2.offline.episode_source import EpisodeSource
from keras_rl2.offline.minari_folder import import_storage
from keras_rl2.saving.atomic_files import replacing
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import map_leaves


def check_new(path: Path) -> None:
    """Raises an error for a folder that is not empty, or without Minari."""
    import_storage()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(
            "Expected a folder that is new, or empty, for a dataset: pass "
            "another path, or read the existing data with OfflineDataset. "
            f"Received: {path}, which exists"
        )


def write_minari(
    source: EpisodeSource, path: Path, env_spec: object = None
) -> None:
    """Writes a dataset atomically.

    Args:
        source: `EpisodeSource` with both spaces. Fits into memory.
        path: path. A new folder. Minari finds it by its name, if that ends in
            a version, e.g. `-v0`.
        env_spec: `gymnasium.envs.registration.EnvSpec` or None. Specifies the
            environment of the recording; anything else is left out. Defaults
            to `None`.

    Raises:
        ImportError: If Minari is not installed.
        ValueError: If the folder is not empty.
        OSError: If it cannot be written.
    """
    check_new(path)
    import minari

    path.parent.mkdir(parents=True, exist_ok=True)
    plain = re.sub(r"[^-\w]", "_", path.name)
    versioned = re.search(r"-v\d+$", plain)
    with replacing(path) as unfinished:
        unfinished.mkdir()
        storage = import_storage().new(
            unfinished / "data",
            source.observation_space,
            source.action_space,
            env_spec if isinstance(env_spec, EnvSpec) else None,
            # Images are written as plain numbers.
            jpeg_encoding=False,
        )
        storage.update_episodes(_episodes(source))
        storage.update_metadata(
            {
                "dataset_id": plain if versioned else f"{plain}-v0",
                "minari_version": minari.__version__,
            }
        )


def _episodes(source: EpisodeSource) -> Iterator[Any]:
    """Yields the episodes as Minari takes them."""
    from minari.data_collector import EpisodeBuffer

    assert source.observation_space is not None
    assert source.action_space is not None
    observations = space_tree(source.observation_space)
    actions = space_tree(source.action_space)

    def declared(space: gymnasium.Space[Any], array: np.ndarray) -> Any:
        return array.astype(space.dtype, copy=False)

    for number, length in enumerate(source.lengths.tolist()):
        rows = source.read(np.array([[number, 0, length]]))
        taken = map_leaves(lambda array: array[:-1], rows.action)
        truncated = rows.truncated[:-1].copy()
        # An interrupted episode counts as truncated for readers.
        truncated[-1] |= not rows.terminated[length - 1]
        yield EpisodeBuffer(
            observations=map_leaves(declared, observations, rows.observation),
            actions=map_leaves(declared, actions, taken),
            rewards=rows.reward[:-1],
            terminations=rows.terminated[:-1],
            truncations=truncated,
        )
