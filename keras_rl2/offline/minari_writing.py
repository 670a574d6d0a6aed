"""Writing episodes in the format of Minari.

Minari itself is not needed. Its own writer takes 1.8 times as long, makes
files of short episodes 4 times as large, and a full disk can end the process
while HDF5 closes the file.
"""

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import numpy as np
from gymnasium.envs.registration import EnvSpec

from keras_rl2.files.atomic_files import replacing
from keras_rl2.offline.episode_source import EpisodeSource
from keras_rl2.offline.minari_folder import MAIN_FILE
from keras_rl2.offline.minari_folder import METADATA_FILE
from keras_rl2.offline.minari_folder import SUBSPACES
from keras_rl2.offline.minari_folder import TUPLE_ITEM
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import map_leaves

# The layout of this release, which newer ones read, too.
_MINARI_VERSION = "0.5.4"


def check_new(path: Path) -> None:
    """Raises an error for a path that is already in use.

    Args:
        path: path. The folder to write.

    Raises:
        ValueError: If the folder is not empty, or is a file.
    """
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
        ValueError: If the folder is not empty.
        OSError: If it cannot be written.
    """
    check_new(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = _content(source)
    metadata = _metadata(source, path.name, env_spec, len(content))
    with replacing(path) as unfinished:
        folder = unfinished / "data"
        folder.mkdir(parents=True)
        (folder / MAIN_FILE).write_bytes(content)
        (folder / METADATA_FILE).write_text(json.dumps(metadata), "utf-8")


def _content(source: EpisodeSource) -> memoryview:
    """Returns an HDF5 file with one group for each episode."""
    assert source.observation_space is not None
    assert source.action_space is not None
    observations = space_tree(source.observation_space)
    actions = space_tree(source.action_space)

    def declared(space: gymnasium.Space[Any], array: np.ndarray) -> Any:
        return array.astype(space.dtype, copy=False)

    # In memory: if a write to a disk fails, HDF5 can end the process.
    memory = io.BytesIO()
    with h5py.File(memory, "w", track_order=True) as hdf5:
        for number, length in enumerate(source.lengths.tolist()):
            rows = source.read(np.array([[number, 0, length]]))
            taken = map_leaves(lambda array: array[:-1], rows.action)
            truncated = rows.truncated[:-1].copy()
            # An interrupted episode counts as truncated for readers.
            truncated[-1] |= not rows.terminated[length - 1]
            group = hdf5.create_group(f"episode_{number}")
            group.attrs["id"] = number
            group.attrs["total_steps"] = length
            _write_tree(
                group,
                {
                    "observations": map_leaves(
                        declared, observations, rows.observation
                    ),
                    "actions": map_leaves(declared, actions, taken),
                    "rewards": rows.reward[:-1],
                    "terminations": rows.terminated[:-1],
                    "truncations": truncated,
                },
            )
    return memory.getbuffer()


def _write_tree(group: h5py.h5g.GroupID, tree: dict[str, Any]) -> None:
    """Writes arrays into a group, and a group for each dict or tuple."""
    for name, branch in tree.items():
        if isinstance(branch, tuple):
            branch = {f"{TUPLE_ITEM}{i}": each for i, each in enumerate(branch)}
        if isinstance(branch, dict):
            _write_tree(group.create_group(name), branch)
        else:
            group.create_dataset(name, data=branch)


def _metadata(
    source: EpisodeSource, name: str, env_spec: object, size: int
) -> dict[str, Any]:
    """Returns Minari's description of a dataset."""
    plain = re.sub(r"[^-\w]", "_", name)
    versioned = re.search(r"-v\d+$", plain)
    described = {
        "total_episodes": len(source.lengths),
        "total_steps": int(source.lengths.sum()),
        "data_format": "hdf5",
        # Images are written as plain numbers.
        "jpeg_encoding": False,
        "observation_space": json.dumps(_space(source.observation_space)),
        "action_space": json.dumps(_space(source.action_space)),
        "dataset_id": plain if versioned else f"{plain}-v0",
        "dataset_size": round(size / 1e6, 1),
        "minari_version": _MINARI_VERSION,
    }
    if isinstance(env_spec, EnvSpec):
        # It is left out if arguments of the environment are objects: the data
        # is valid without it.
        with contextlib.suppress(TypeError, ValueError):
            described["env_spec"] = env_spec.to_json()
    return described


def _space(space: gymnasium.Space[Any] | None) -> dict[str, Any]:
    """Returns Minari's description of a space, as plain data."""
    kinds = gymnasium.spaces
    kind: dict[str, Any] = {"type": type(space).__name__}
    if isinstance(space, kinds.Dict):
        inner = {key: _space(each) for key, each in space.items()}
        return {**kind, SUBSPACES: inner}
    if isinstance(space, kinds.Tuple):
        return {**kind, SUBSPACES: [*map(_space, space)]}
    if isinstance(space, kinds.Discrete):
        start, n = int(space.start), int(space.n)
        return {**kind, "dtype": "int64", "start": start, "n": n}
    if isinstance(space, kinds.MultiBinary):
        shape = list(space.shape)
        return {**kind, "n": shape[0] if len(shape) == 1 else shape}
    assert isinstance(space, kinds.Box | kinds.MultiDiscrete)
    kind["dtype"] = str(space.dtype)
    if isinstance(space, kinds.MultiDiscrete):
        names = ["nvec", "start"]
    else:
        kind["shape"] = list(space.shape)
        names = ["low", "high"]
    numbers = {name: getattr(space, name).tolist() for name in names}
    return kind | numbers
