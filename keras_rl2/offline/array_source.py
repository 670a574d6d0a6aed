"""Episodes in arrays, one after another, and the opening of sources."""

import os
import zipfile
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import TypeAlias
from typing import Union

import gymnasium
import h5py
import numpy as np
import numpy.typing as npt

from keras_rl2.data.replay import ReplayDataset
from keras_rl2.offline.episode_rows import EpisodeRows
from keras_rl2.offline.episode_rows import stacked
from keras_rl2.offline.minari_files import MAIN_FILE
from keras_rl2.offline.minari_files import MinariFolder
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves

if TYPE_CHECKING:
    from minari import MinariDataset

# The names of D4RL, which many files still use.
_OTHER_NAMES = {"terminals": "terminations", "timeouts": "truncations"}
_COLUMNS = ("rewards", "terminations", "truncations")
_NEEDED = ("observations", "actions", *_COLUMNS)
_NEXT = "next_observations"
_COMPARED_ROWS = 65536


class ArraySource:
    """A record of N steps in temporal order, cut where episodes end.

    The observation after the last step of an episode is known only from
    `next_observations`. Without them, the last step of a truncated episode is
    left out: there is nothing to bootstrap from. If a step's next observation
    differs from the observation of the next step, the episode was interrupted
    there, and counts as truncated.

    Args:
        arrays: dict of `observations` and `actions` `[N, ...]`, arrays or trees
            of them; `rewards`, `terminations` and `truncations` `[N]`; and
            optionally `next_observations` `[N, ...]`.
        name: str. The name of the source in error messages.
        observation_space: `gymnasium.Space` or None. Defaults to `None`.
        action_space: `gymnasium.Space` or None. Defaults to `None`.

    Attributes:
        lengths: `[E]` int64. Transitions of each episode.
        returns: `[E]` float64. Sum of the rewards of each episode.

    Raises:
        ValueError: If a key is missing, or the arrays do not fit together.
    """

    def __init__(
        self,
        arrays: Mapping[str, Any],
        name: str,
        observation_space: gymnasium.Space[Any] | None = None,
        action_space: gymnasium.Space[Any] | None = None,
    ) -> None:
        self.name = name
        self.observation_space = observation_space
        self.action_space = action_space
        given = {
            _OTHER_NAMES.get(key, key): map_leaves(_as_array, tree)
            for key, tree in arrays.items()
        }
        _check(given, name)
        self._observation = given["observations"]
        self._next = given.get(_NEXT)
        self._action = given["actions"]
        self._reward = given["rewards"][:].astype(np.float32)
        self._terminated = given["terminations"][:].astype(np.bool_)
        self._truncated = given["truncations"][:].astype(np.bool_)
        self._find_episodes()

    def _find_episodes(self) -> None:
        """Sets the first steps, lengths and returns of episodes."""
        ended = self._terminated | self._truncated
        if self._next is not None:
            ended |= self._broken_off()
        ended[-1] = True
        last = np.flatnonzero(ended)
        begin = np.concatenate([[0], last[:-1] + 1])
        returns = np.add.reduceat(self._reward.astype(np.float64), begin)
        lengths = last - begin + 1
        if self._next is None:
            lengths = lengths - ~self._terminated[last]
        kept = lengths > 0
        if not kept.any():
            raise ValueError(
                f"Expected at least one transition in {self.name}: without "
                "`next_observations`, the last step of an episode that was "
                f"not terminated is left out. Received: {len(ended)} steps"
            )
        self._begin, self._whole = begin[kept], (last - begin + 1)[kept]
        self.lengths = lengths[kept].astype(np.int64)
        self.returns = returns[kept]

    def _broken_off(self) -> np.ndarray:
        """Returns for each step whether the record jumps after it, `[N]`."""
        count = len(self._reward)
        broken = np.zeros(count, np.bool_)
        for here, following in zip(
            leaves(self._observation), leaves(self._next), strict=True
        ):
            for start in range(0, count - 1, _COMPARED_ROWS):
                stop = min(start + _COMPARED_ROWS, count - 1)
                differs = following[start:stop] != here[start + 1 : stop + 1]
                broken[start:stop] |= differs.reshape(stop - start, -1).any(1)
        return broken

    def read(self, pieces: np.ndarray) -> EpisodeRows:
        """Reads pieces of episodes, `[P, 3]` int64; see `EpisodeRows`."""

        def steps_of(array: np.ndarray) -> np.ndarray:
            def part(number: int, first: int, stop: int) -> np.ndarray:
                begin = self._begin[number]
                return array[begin + first : begin + stop]

            return stacked(pieces, part)

        def observations_of(
            array: np.ndarray, following: np.ndarray
        ) -> np.ndarray:
            def part(number: int, first: int, stop: int) -> np.ndarray:
                begin = self._begin[number]
                end = begin + stop
                if stop < self._whole[number]:
                    return array[begin + first : end + 1]
                last = following[end - 1 : end]
                return np.concatenate([array[begin + first : end], last])

            return stacked(pieces, part)

        return EpisodeRows(
            pieces=pieces,
            observation=map_leaves(
                observations_of,
                self._observation,
                # Meaningless after a termination, and never looked at.
                self._observation if self._next is None else self._next,
            ),
            action=map_leaves(steps_of, self._action),
            reward=steps_of(self._reward),
            terminated=steps_of(self._terminated),
            truncated=steps_of(self._truncated),
        )

    def whole_episodes(self) -> Iterator[np.ndarray]:
        """Yields each episode as a piece for `read`, `[1, 3]` int64."""
        for number, length in enumerate(self.lengths.tolist()):
            yield np.array([[number, 0, length]])

    def close(self) -> None:
        """Frees the arrays, when nothing more is to be read."""
        self._observation = self._next = self._action = None


#: Recorded episodes that are read piece by piece.
EpisodeSource: TypeAlias = ArraySource | MinariFolder

#: Recorded episodes as users pass them; see `OfflineDataset`.
GivenSource: TypeAlias = Union[
    str,
    os.PathLike[str],
    Mapping[str, Any],
    ReplayDataset,
    ArraySource,
    "MinariDataset",
]


def open_source(source: GivenSource) -> EpisodeSource:
    """Opens recorded episodes; see `keras_rl2.OfflineDataset`."""
    if isinstance(source, ArraySource):
        return source
    if isinstance(source, ReplayDataset):
        return _open_replay(source)
    if isinstance(source, Mapping):
        return ArraySource(source, "the arrays")
    if isinstance(source, str | os.PathLike):
        return _open_path(Path(source))
    if hasattr(source, "episode_indices") and hasattr(source, "storage"):
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
    for folder in (path, path / "data"):
        if (folder / MAIN_FILE).is_file():
            return MinariFolder(folder)
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
    groups: dict[str, dict[str, Any]] = {}
    for key, array in arrays.items():
        name, _, rest = key.partition(".")
        groups.setdefault(name, {})[rest] = array
    tree = {
        name: each[""] if "" in each else _nested(each)
        for name, each in groups.items()
    }
    counted = [str(index) for index in range(len(tree))]
    if {*tree} == {*counted}:
        return tuple(tree[name] for name in counted)
    return tree


def _open_replay(replay: ReplayDataset) -> ArraySource:
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


def _check(given: Mapping[str, Any], name: str) -> None:
    """Raises an error if arrays are missing, or do not fit together."""
    if not {*_NEEDED} <= {*given} <= {*_NEEDED, _NEXT}:
        raise ValueError(
            f"Expected {', '.join(_NEEDED)} and optionally {_NEXT} in {name}. "
            f"Received: {', '.join(sorted(given)) or 'nothing'}"
        )
    shapes = {}
    for path, array in named_leaves(given):
        shapes[path] = array.shape
        if array.dtype.kind not in "biuf":
            raise ValueError(
                f"Expected arrays of numbers in {name}. Received: {path} "
                f"of dtype {array.dtype}"
            )
    count = shapes["rewards"][:1] if "rewards" in shapes else (0,)
    following = {
        path.replace(_NEXT, "observations"): shape
        for path, shape in shapes.items()
        if path.startswith(_NEXT)
    }
    if (
        count in ((), (0,))
        or any(shape[:1] != count for shape in shapes.values())
        or any(shapes.get(key) != count for key in _COLUMNS)
        or not following.items() <= shapes.items()
    ):
        raise ValueError(
            "Expected arrays of one length, of at least one step, in "
            f"{name}, with one number per step in {', '.join(_COLUMNS)}, and "
            f"{_NEXT} of the shapes of observations. Received: "
            f"{', '.join(f'{path} {shape}' for path, shape in shapes.items())}"
        )


def _as_array(array: npt.ArrayLike) -> Any:
    """Returns an array, or an `h5py.Dataset` as it is."""
    return array if isinstance(array, h5py.Dataset) else np.asanyarray(array)
