"""Checkpoints on the disk, each of them whole or not there at all."""

import contextlib
import json
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from typing import NamedTuple

import numpy as np

from keras_rl2.saving import plain_data
from keras_rl2.saving.archives import Arrays
from keras_rl2.saving.archives import check_archive
from keras_rl2.saving.archives import read_arrays
from keras_rl2.saving.archives import write_arrays
from keras_rl2.saving.atomic_files import PREFIX

_PREFIX, _SEGMENTS = "checkpoint-", "segments"
# Names as written, unlike `checkpoint-7.npz` and `checkpoint-00000007.old.npz`.
_NAME = re.compile(rf"{_PREFIX}(0[0-9]{{7}}|[1-9][0-9]{{7,}})\.npz")
# The member with all that is no array, as UTF-8.
_TEXT = "text"
# Name of a file, and the row at the end of the log when it was written.
Segment = tuple[str, int]


class SegmentLog:
    """Logs of rows by name, each in segments from old to new.

    A replay buffer is too large to be written again and again: each checkpoint
    adds a segment with the new rows, and earlier segments stay.

    Args:
        directory: Path. Where the files are.
        segments: dict of lists of `(file, stop)` by the name of a log: the
            existing segments. Defaults to `None`: none.

    Example:

    >>> import tempfile
    >>> log = SegmentLog(Path(tempfile.mkdtemp()))
    >>> log.append("replay", [(2, {"reward": np.ones(2)})])
    >>> log.segments = log.write("00000000")
    >>> log.stop("replay"), [len(each["reward"]) for each in log.read("replay")]
    (2, [2])
    """

    def __init__(
        self,
        directory: Path,
        segments: Mapping[str, Iterable[Segment]] | None = None,
    ) -> None:
        self.directory = directory
        self.segments = {
            name: [(file, stop) for file, stop in each]
            for name, each in (segments or {}).items()
        }
        #: Files of rows that the next `write` refers to.
        self.early: set[str] = set()
        # Or the error of the disk, which `write` raises.
        self._pending: dict[
            str, tuple[list[Segment], int, Arrays] | OSError
        ] = {}

    def stop(self, name: str) -> int:
        """Returns the row after the last one of a log; 0 if there is none."""
        segments = self.segments.get(name)
        return segments[-1][1] if segments else 0

    def append(self, name: str, parts: Iterable[tuple[int, Arrays]]) -> None:
        """Adds rows in parts, of which only the last waits for `write`.

        Args:
            name: str. The log.
            parts: Iterable of `(stop, arrays)`, made one after the other.
        """
        files: list[Segment] = []
        last: tuple[int, Arrays] | None = None
        try:
            for part in parts:
                if last is not None:
                    label = secrets.token_hex(8)
                    files.append(self._segment(name, label, *last))
                last = part
        except OSError as error:
            self._pending[name] = error
            return
        assert last is not None
        self._pending[name] = files, *last

    def _segment(
        self, name: str, label: str, stop: int, arrays: Arrays
    ) -> Segment:
        """Writes rows into a file, and returns its segment."""
        file = f"{name}-{label}.npz"
        # Before it exists: another thread removes files that nobody needs.
        self.early.add(file)
        self.directory.mkdir(parents=True, exist_ok=True)
        write_arrays(self.directory / file, arrays)
        return file, stop

    def forget(self, name: str, before: int) -> None:
        """Drops segments that only hold rows before a given one, to be kept."""
        if name in self.segments:
            # The last segment stays, since the log continues at its end.
            kept = [each for each in self.segments[name] if each[1] >= before]
            self.segments[name] = kept

    def read(self, name: str) -> Iterator[dict[str, np.ndarray]]:
        """Yields the segments of a log, from old to new, each a dict."""
        for file, _ in self.segments[name]:
            yield read_arrays(self.directory / file)

    def check(self) -> None:
        """Raises a `ValueError` for files that are missing or have changed."""
        for segments in self.segments.values():
            for file, _ in segments:
                path = self.directory / file
                if not path.exists():
                    raise ValueError(f"{path} is missing.")
                check_archive(path)

    def write(self, label: str) -> dict[str, list[Segment]]:
        """Writes the rows added since, each log to its own file.

        Logs without new rows are skipped. The log is unchanged until the result
        becomes its `segments`; without that, its rows must be added again.
        """
        pending, self._pending = self._pending, {}
        segments = {}
        for name, found in pending.items():
            if isinstance(found, OSError):
                raise found
            files, stop, arrays = found
            newest = self._segment(name, label, stop, arrays)
            segments[name] = [*self.segments.get(name, []), *files, newest]
        return segments


class Saved(NamedTuple):
    """A checkpoint that has been read: its file, state, and rows."""

    path: Path
    state: Any
    log: SegmentLog


class CheckpointFolder:
    """A folder that keeps the newest checkpoints.

    Each checkpoint is a file, renamed to its final name when all of it is on
    the disk. One that has changed since raises an error. Rows of a `SegmentLog`
    are in files of their own, which several checkpoints share.

    Attributes:
        log: `SegmentLog`. Rows that the next checkpoint refers to.

    Example:

    >>> import tempfile
    >>> folder = CheckpointFolder(tempfile.mkdtemp(), keep=2)
    >>> for step in range(4):
    ...     folder.write({"step": step, "mean": np.zeros(2)})
    >>> folder.newest().state
    {'step': 3, 'mean': array([0., 0.])}
    >>> [each.name for each in folder.paths()]
    ['checkpoint-00000002.npz', 'checkpoint-00000003.npz']
    """

    def __init__(
        self, directory: str | os.PathLike[str], keep: int = 3
    ) -> None:
        # Its import is slow.
        import filelock

        self.directory = Path(directory)
        self.keep = keep
        self.log = SegmentLog(self.directory / _SEGMENTS)
        # Taken in one thread, and used in the writing one.
        self._lock = filelock.FileLock(
            self.directory / "writer.lock", blocking=False, thread_local=False
        )
        self._writing: Future[None] | None = None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from writing; waits for unfinished writing."""
        import filelock

        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except filelock.Timeout as error:
            raise ValueError(
                f"Expected one writer at a time to {self.directory}: end the "
                "other one, or give this one a directory of its own. "
                f"Received: a second one, while {error.lock_file} is locked"
            ) from error
        for left in self.directory.rglob(f"{PREFIX}*"):
            # Of a killed process: nobody else writes here.
            shutil.rmtree(left, ignore_errors=True)
        try:
            yield
        finally:
            self._join()
            with contextlib.suppress(OSError):
                if self._lock.lock_counter == 1:
                    Path(self._lock.lock_file).unlink()
                # Nothing was written there.
                self.directory.rmdir()
            self._lock.release()

    def paths(self) -> list[Path]:
        """Returns the files of all checkpoints, from old to new."""
        found = self.directory.glob(f"{_PREFIX}*")
        named = [each for each in found if _NAME.fullmatch(each.name)]
        return sorted(named, key=_number)

    def newest(self, with_rows: bool = True) -> Saved | None:
        """Reads the newest intact checkpoint; warns of damaged ones."""
        paths = self.paths()
        for path in reversed(paths):
            try:
                return self.read(path, with_rows)
            except ValueError as error:
                if path == paths[0]:
                    raise ValueError(
                        f"Expected an intact checkpoint in {self.directory}: "
                        "remove the folder to begin anew. "
                        f"Received: {len(paths)} damaged ones; {error}"
                    ) from error
                warnings.warn(
                    f"{path} is skipped, and the checkpoint before it "
                    f"read: {error}",
                    stacklevel=2,
                )
        return None

    def read(self, path: Path, with_rows: bool = True) -> Saved:
        """Reads one checkpoint."""
        check_archive(path)
        arrays = read_arrays(path)
        try:
            content = json.loads(arrays[_TEXT].tobytes())
            state = plain_data.from_json(content["state"], arrays)
        except KeyError as error:
            raise ValueError(f"{path} is damaged: it lacks {error}") from error
        log = SegmentLog(self.directory / _SEGMENTS, content["segments"])
        if with_rows:
            log.check()
        return Saved(path, state, log)

    def write(self, state: object) -> None:
        """Writes a checkpoint, and removes old ones."""
        self._write(*plain_data.to_json(state))

    def _write(self, state: Any, arrays: dict[str, np.ndarray]) -> None:
        """Writes a checkpoint of JSON data and arrays."""
        self.directory.mkdir(parents=True, exist_ok=True)
        paths = self.paths()
        number = _number(paths[-1]) + 1 if paths else 0
        path = self.directory / f"{_PREFIX}{number:08d}.npz"
        segments = self.log.write(f"{number:08d}")
        text = json.dumps({"segments": segments, "state": state}).encode()
        write_arrays(path, {**arrays, _TEXT: np.frombuffer(text, "u1")})
        # Not before: after a failed write, the next one writes to the same
        # files.
        self.log.segments = segments
        self.log.early.difference_update(
            file for each in segments.values() for file, _ in each
        )
        # If an old one cannot be removed now, the next write removes it.
        with contextlib.suppress(OSError):
            self._tidy()

    def write_beside(self, state: object) -> None:
        """Starts writing a copy of a state in a thread, and returns."""
        # Training changes the arrays; rows of the log are copies already.
        taken, arrays = plain_data.to_json(state)
        copies = {name: array.copy() for name, array in arrays.items()}
        self.wait()
        thread = ThreadPoolExecutor(1, "checkpoint")
        self._writing = thread.submit(self._write, taken, copies)
        thread.shutdown(wait=False)

    def wait(self) -> None:
        """Waits for unfinished writing, and warns if the disk has failed."""
        error = self._join()
        if isinstance(error, OSError):
            newest = max(self.paths(), key=_number, default="There is none")
            warnings.warn(
                "No checkpoint could be written; training continues: "
                f"{error}. The newest one: {newest}",
                stacklevel=2,
            )
        elif error is not None:
            raise error

    def clear(self) -> None:
        """Removes all checkpoints, and nothing else."""
        if not self.directory.is_dir():
            return
        with self.locked():
            for path in self.paths():
                path.unlink()
            self._tidy()
            with contextlib.suppress(OSError):
                (self.directory / _SEGMENTS).rmdir()

    def _join(self) -> BaseException | None:
        """Waits for the thread that writes, and returns its error, once."""
        if self._writing is None:
            return None
        error = self._writing.exception()
        # Not before: Ctrl-C may interrupt the wait.
        self._writing = None
        return error

    def _tidy(self) -> None:
        """Removes old checkpoints, and segments of no checkpoint."""
        paths = self.paths()
        for old in paths[: -self.keep]:
            old.unlink()
        needed = set(self.log.early)
        for path in paths[-self.keep :]:
            try:
                with np.load(path, allow_pickle=False) as arrays:
                    content = json.loads(arrays[_TEXT].tobytes())
                for segments in content["segments"].values():
                    needed.update(file for file, _ in segments)
            except OSError:
                raise
            except Exception:
                # Damaged: its segments will not be read.
                continue
        for file in (self.directory / _SEGMENTS).glob("*.npz"):
            if file.name not in needed:
                file.unlink()


def _number(path: Path) -> int:
    """Returns the number in the name of a checkpoint."""
    return int(path.stem.removeprefix(_PREFIX))
