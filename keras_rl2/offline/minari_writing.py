"""Writing episodes as Minari keeps them."""

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import numpy as np

from keras_rl2.files.atomic_files import replacing
from keras_rl2.offline.episode_source import EpisodeSource
from keras_rl2.offline.hdf5_output import Hdf5Output
from keras_rl2.offline.minari_folder import MAIN_FILE
from keras_rl2.offline.minari_folder import METADATA_FILE
from keras_rl2.offline.minari_folder import TUPLE_ITEM
from keras_rl2.offline.minari_metadata import space_to_minari
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import map_leaves

# Whose layout it is; what is newer reads it, too.
_MINARI_VERSION = "0.5.4"


def check_new(path: Path) -> None:
    """Refuses to write over what is there.

    Args:
        path: path. The folder to write.

    Raises:
        ValueError: If there is something in it.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(
            "Expected a folder that is new, or empty, for a dataset: give "
            "another path, or read what is there with OfflineDataset. "
            f"Received: {path}, which is there"
        )


def write_minari(
    source: EpisodeSource, path: Path, env_spec: Any = None
) -> None:
    """Writes a dataset, whole or not at all.

    Args:
        source: `EpisodeSource` that knows its spaces.
        path: path. A new folder. Minari finds it by its name, if that ends in
            a version, `-v0` say.
        env_spec: `gymnasium.envs.registration.EnvSpec` or None. Of what it was
            recorded in. Defaults to `None`.

    Raises:
        ValueError: If there is something in the folder.
        OSError: If it cannot be written.
    """
    check_new(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as unfinished:
        folder = unfinished / "data"
        folder.mkdir(parents=True)
        with Hdf5Output(folder / MAIN_FILE) as output:
            _write_episodes(source, output)
        size = (folder / MAIN_FILE).stat().st_size / 1e6
        metadata = _metadata(source, path.name, env_spec, round(size, 1))
        (folder / METADATA_FILE).write_text(json.dumps(metadata), "utf-8")


def _write_episodes(source: EpisodeSource, file: Hdf5Output) -> None:
    """Writes one group for each episode."""
    observations = space_tree(_known(source.observation_space))
    actions = space_tree(_known(source.action_space))

    def declared(space: gymnasium.Space[Any], array: np.ndarray) -> Any:
        return array.astype(space.dtype, copy=False)

    with h5py.File(file, "w", track_order=True) as hdf5:
        for number, length in enumerate(source.lengths.tolist()):
            rows = source.read(np.array([[number, 0, length]]))
            truncated = rows.truncated[:-1].copy()
            # What was broken off is truncated to whoever reads it.
            truncated[-1] |= not rows.terminated[length - 1]
            group = hdf5.create_group(f"episode_{number}")
            group.attrs["id"] = number
            group.attrs["total_steps"] = length
            taken = map_leaves(lambda array: array[:-1], rows.action)
            for key, tree in (
                (
                    "observations",
                    map_leaves(declared, observations, rows.observation),
                ),
                ("actions", map_leaves(declared, actions, taken)),
                ("rewards", rows.reward[:-1]),
                ("terminations", rows.terminated[:-1]),
                ("truncations", truncated),
            ):
                _write_tree(group, key, tree)


def _write_tree(group: Any, key: str, tree: Any) -> None:
    """Writes an array, or a group of what a dict or tuple holds."""
    if isinstance(tree, np.ndarray):
        group.create_dataset(key, data=tree)
        return
    if isinstance(tree, tuple):
        tree = {f"{TUPLE_ITEM}{i}": each for i, each in enumerate(tree)}
    inner = group.create_group(key)
    for name, branch in tree.items():
        _write_tree(inner, name, branch)


def _metadata(
    source: EpisodeSource, name: str, env_spec: Any, size: float
) -> dict[str, Any]:
    """Returns what Minari wants to know of a dataset."""
    plain = re.sub(r"[^-\w]", "_", name)
    versioned = re.search(r"-v\d+$", plain)
    found = {
        "total_episodes": len(source.lengths),
        "total_steps": int(source.lengths.sum()),
        "data_format": "hdf5",
        # Pictures are written as the numbers that they are.
        "jpeg_encoding": False,
        "observation_space": json.dumps(
            space_to_minari(_known(source.observation_space))
        ),
        "action_space": json.dumps(
            space_to_minari(_known(source.action_space))
        ),
        "dataset_id": plain if versioned else f"{plain}-v0",
        "dataset_size": size,
        "minari_version": _MINARI_VERSION,
    }
    if env_spec is not None:
        # Not of an environment whose arguments are objects: the data is good
        # all the same.
        with contextlib.suppress(TypeError, ValueError):
            found["env_spec"] = env_spec.to_json()
    return found


def _known(space: gymnasium.Space[Any] | None) -> gymnasium.Space[Any]:
    """Returns a space that is there."""
    assert space is not None
    return space
