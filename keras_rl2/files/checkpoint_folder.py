"""Checkpoints on the disk, written atomically."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import warnings
import zipfile
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from typing import NamedTuple

import numpy as np

from keras_rl2.files import plain_data
from keras_rl2.files.atomic_files import replacing
from keras_rl2.files.segment_log import Segment
from keras_rl2.files.segment_log import SegmentLog
from keras_rl2.files.segment_log import digest
from keras_rl2.files.segment_log import segments_from
from keras_rl2.files.segment_log import size_of
from keras_rl2.files.writer_lock import WriterLock
from keras_rl2.version import __version__

#: Version of a checkpoint's files; incremented if older releases cannot read
#: them.
FORMAT = 1
_PREFIX = "checkpoint-"
_SEGMENTS = "segments"
_MANIFEST, _STATE, _ARRAYS = "manifest.json", "state.json", "arrays.npz"
# Names as written, unlike `checkpoint-7` and `checkpoint-00000007.old`.
_NAME = re.compile(rf"{_PREFIX}(0[0-9]{{7}}|[1-9][0-9]{{7,}})")
# Errors for missing files.
_MISSING = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class Saved(NamedTuple):
    """A checkpoint that has been read.

    Attributes:
        path: Path. Its folder.
        number: int. Number of the checkpoint, counted from 0.
        state: Tree of plain data. The argument of `write`.
        log: `SegmentLog`. Rows that the state refers to.
        ended: dict or None. The reason for the end of the run; None if it had
            not ended.
    """

    path: Path
    number: int
    state: Any
    log: SegmentLog
    ended: dict[str, Any] | None


class _LaterFormatError(ValueError):
    """Raised for files of a later version, which must not be deleted."""


class CheckpointFolder:
    """A folder that keeps the newest checkpoints.

    Each checkpoint is a folder, which is renamed to its final name when all of
    it is on the disk. Its manifest has the version that wrote it, and the
    SHA-256 of each of its files: a file that has changed since raises an error.
    Rows of a `SegmentLog` are in separate files, which several checkpoints
    share.

    Args:
        directory: str or path. The folder, made at the first write.
        keep: int. Number of checkpoints to keep. Defaults to `3`.

    Example:

    >>> import tempfile
    >>> folder = CheckpointFolder(tempfile.mkdtemp(), keep=2)
    >>> for step in range(4):
    ...     path = folder.write({"step": step, "mean": np.zeros(2)})
    >>> folder.newest().state
    {'step': 3, 'mean': array([0., 0.])}
    >>> [each.name for each in folder.paths()]
    ['checkpoint-00000002', 'checkpoint-00000003']
    """

    def __init__(
        self, directory: str | os.PathLike[str], keep: int = 3
    ) -> None:
        if not isinstance(keep, int) or keep < 1:
            raise ValueError(
                "Expected `keep` to be an integer of at least 1. "
                f"Received: keep={keep!r}"
            )
        self.directory = Path(directory)
        self.keep = keep

    def paths(self) -> list[Path]:
        """Returns the folders of all checkpoints, from old to new."""
        if not self.directory.is_dir():
            return []
        found = self.directory.glob(f"{_PREFIX}*")
        named = [each for each in found if _NAME.fullmatch(each.name)]
        return sorted(named, key=_number)

    def newest(self, with_rows: bool = True) -> Saved | None:
        """Reads the newest intact checkpoint.

        Args:
            with_rows: bool. See `read`. Defaults to `True`.

        Returns:
            `Saved`; None if there is no checkpoint. A damaged checkpoint is
            skipped with a warning.

        Raises:
            ValueError: If all existing checkpoints are damaged, since a new run
                would replace them, or if a later version of the library has
                written one.
            OSError: If the disk cannot be read.
        """
        paths = self.paths()
        for path in reversed(paths):
            try:
                return self.read(path, with_rows)
            except _LaterFormatError:
                raise
            except (ValueError, *_MISSING) as error:
                if path == paths[0]:
                    raise ValueError(
                        f"Expected an intact checkpoint in "
                        f"{self.directory}: remove the folder to begin anew. "
                        f"Received: {len(paths)} damaged ones; {error}"
                    ) from error
                warnings.warn(
                    f"{path} is skipped, and the checkpoint before it "
                    f"read: {error}",
                    stacklevel=2,
                )
        return None

    def read(self, path: Path, with_rows: bool = True) -> Saved:
        """Reads one checkpoint.

        Args:
            path: Path. Its folder.
            with_rows: bool. Whether the rows of its log are verified too, which
                takes the longest. Defaults to `True`.

        Returns:
            `Saved`.

        Raises:
            ValueError: If a file of it has changed since, or a later version of
                the library has written it.
            FileNotFoundError: If it has no manifest.
        """
        _refuse_links(path)
        content = _read_manifest(path)
        _check_members(path, content["members"])
        log = SegmentLog(
            self.directory / _SEGMENTS, segments_from(content["segments"])
        )
        if with_rows:
            log.check()
        text = (path / _STATE).read_text(encoding="utf-8")
        try:
            state = plain_data.from_json(
                json.loads(text), _read_arrays(path / _ARRAYS)
            )
        except (RecursionError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path}: {error}") from error
        return Saved(path, _number(path), state, log, content.get("ended"))

    def new_log(self) -> SegmentLog:
        """Returns an empty log of rows, for `write`."""
        return SegmentLog(self.directory / _SEGMENTS)

    def write(
        self,
        state: object,
        log: SegmentLog | None = None,
        ended: Mapping[str, Any] | None = None,
    ) -> Path:
        """Writes a checkpoint, and removes old ones.

        Args:
            state: Tree of plain data; see `plain_data.to_json`.
            log: `SegmentLog` or None. A log of this folder, with the rows that
                the state refers to. Defaults to `None`: it refers to none.
            ended: dict or None. See `Saved`; JSON data. Defaults to `None`.

        Returns:
            Path of its folder.

        Raises:
            OSError: If it cannot be written; other checkpoints are unchanged.
            TypeError: If it contains anything but plain data.
        """
        taken, arrays = plain_data.to_json(state)
        return self.write_parts(taken, arrays, log, ended)

    def write_parts(
        self,
        taken: object,
        arrays: Mapping[str, np.ndarray],
        log: SegmentLog | None = None,
        ended: Mapping[str, Any] | None = None,
    ) -> Path:
        """Writes a state converted by `to_json`; see `write`.

        Args:
            taken: JSON data of `plain_data.to_json`.
            arrays: dict of the arrays of `plain_data.to_json`.
            log: `SegmentLog` or None. See `write`. Defaults to `None`.
            ended: dict or None. See `write`. Defaults to `None`.

        Returns:
            Path of its folder.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        paths = self.paths()
        number = _number(paths[-1]) + 1 if paths else 0
        path = self.directory / f"{_PREFIX}{number:08d}"
        log = log or self.new_log()
        segments = log.write(f"{number:08d}")
        with replacing(path) as unfinished:
            unfinished.mkdir()
            np.savez(unfinished / _ARRAYS, **arrays)  # type: ignore[arg-type]
            text = json.dumps(taken)
            (unfinished / _STATE).write_text(text, encoding="utf-8")
            _write_manifest(unfinished, segments, ended)
        # Not before: after a failed write, the next one writes to the same
        # files.
        log.accept(segments)
        # If an old one cannot be removed now, the next write removes it.
        with contextlib.suppress(OSError):
            self._tidy()
        return path

    def note_end(self, ended: Mapping[str, Any]) -> None:
        """Writes the reason for the end of the run into the newest checkpoint.

        Args:
            ended: dict. See `write`. It stays in the manifest.

        Raises:
            OSError: If it cannot be written.
            ValueError: If the newest checkpoint is damaged.
        """
        if not (paths := self.paths()):
            return
        content = _read_manifest(paths[-1])
        if content.get("ended") is None:
            with replacing(paths[-1] / _MANIFEST) as unfinished:
                unfinished.write_bytes(_signed({**content, "ended": ended}))

    def clear(self) -> None:
        """Removes all checkpoints, and nothing else.

        Raises:
            ValueError: If another process writes them.
        """
        if not self.directory.is_dir():
            return
        with WriterLock(self.directory):
            for path in self.paths():
                _remove(path)
            self._tidy()
        for folder in (self.directory / _SEGMENTS, self.directory):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def _tidy(self) -> None:
        """Removes old checkpoints, and segments of no checkpoint."""
        paths = self.paths()
        for old in paths[: -self.keep]:
            _remove(old)
        needed: set[str] = set()
        for path in paths[-self.keep :]:
            try:
                content = _read_manifest(path)
            except _LaterFormatError:
                # It may refer to files unknown to this version.
                return
            except (ValueError, *_MISSING):
                # Damaged: its segments will not be read.
                continue
            for each in segments_from(content["segments"]).values():
                needed.update(segment.file for segment in each)
        for file in (self.directory / _SEGMENTS).glob("*.npz"):
            if file.name not in needed:
                file.unlink()


def _number(path: Path) -> int:
    """Returns the number of a checkpoint by its folder."""
    return int(path.name.removeprefix(_PREFIX))


def _remove(path: Path) -> None:
    """Removes a checkpoint, or a file or link with the name of one."""
    if path.is_symlink() or not path.is_dir():
        path.unlink()
    else:
        shutil.rmtree(path)


def _members(folder: Path) -> Iterator[Path]:
    """Yields the files of a checkpoint except its manifest."""
    for each in sorted(folder.iterdir()):
        if each.name != _MANIFEST:
            yield each


def _write_manifest(
    folder: Path,
    segments: Mapping[str, Iterable[Segment]],
    ended: Mapping[str, Any] | None,
) -> None:
    """Writes the manifest: sizes and hashes of a checkpoint's other files."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "members": {
            each.name: {
                "bytes": each.stat().st_size,
                "sha256": digest(each),
            }
            for each in _members(folder)
        },
        "segments": segments,
    }
    if ended is not None:
        content["ended"] = ended
    (folder / _MANIFEST).write_bytes(_signed(content))


def _read_manifest(folder: Path) -> dict[str, Any]:
    """Returns the content of a manifest, checking that it is unchanged."""
    given = (folder / _MANIFEST).read_bytes()
    try:
        content: dict[str, Any] = json.loads(given)["content"]
        genuine = _signed(content) == given
    except (ValueError, KeyError, TypeError, RecursionError):
        genuine = False
    if not genuine:
        raise ValueError(f"{folder / _MANIFEST} is damaged.")
    if content["format"] > FORMAT:
        raise _LaterFormatError(
            f"Expected a checkpoint of format {FORMAT} or before. Received: "
            f"{folder} of format {content['format']}, written by version "
            f"{content['version']}"
        )
    return content


def _refuse_links(folder: Path) -> None:
    """Raises an error for a checkpoint that is, or contains, a link."""
    for path in (folder, *(folder / n for n in (_MANIFEST, _STATE, _ARRAYS))):
        if path.is_symlink():
            raise ValueError(f"{path} is a link, which is not followed.")


def _check_members(folder: Path, members: Mapping[str, Any]) -> None:
    """Raises an error for a checkpoint with files that have changed."""
    for name, member in members.items():
        path = folder / name
        size = size_of(path)
        if size != member["bytes"] or digest(path) != member["sha256"]:
            raise ValueError(f"{path} is damaged or incomplete.")


def _signed(content: Mapping[str, Any]) -> bytes:
    """Returns the canonical bytes of a manifest."""
    text = json.dumps(content, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    whole = {"content": content, "sha256": digest}
    return json.dumps(whole, sort_keys=True, indent=2).encode()


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Reads the arrays of a checkpoint."""
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
