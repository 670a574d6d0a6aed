"""Messages between processes of one machine, without copies of arrays.

Pickled: environments, wrappers and exceptions are the user's own objects, and
both ends are processes of one program, which know each other by a key of its
own. Nothing of it is kept.
"""

import contextlib
import mmap
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any
from typing import NamedTuple

# Where arrays begin: the widest loads of a processor.
_ALIGNMENT = 64
_SMALLEST = 1 << 16


class Message(NamedTuple):
    """The placeholder that is sent instead of a message.

    Attributes:
        pickled: bytes. All of it but the contents of arrays.
        block: str. The file of the memory with those; empty if there are none.
        places: tuple of pairs of int. Where each of them begins, and its size.
    """

    pickled: bytes
    block: str
    places: tuple[tuple[int, int], ...]


def shared_folder() -> str:
    """Makes a folder for blocks of memory, on a memory file system if any.

    Returns:
        str. The caller has to remove it.
    """
    in_memory = "/dev/shm"
    where = in_memory if os.access(in_memory, os.W_OK) else None
    return tempfile.mkdtemp(prefix="keras_rl2-", dir=where)


class SharedMemorySender:
    """Writes messages into memory that another process can read.

    A block is written to again once its message has been released. Not
    `multiprocessing.shared_memory`: its blocks belong to the first process
    that dies, unless all are children of one that tracks them.

    Args:
        folder: str, as returned by `shared_folder`.
        name: str. Prefix of the files' names, different for each sender.
    """

    def __init__(self, folder: str, name: str) -> None:
        self._folder = Path(folder)
        self._name = name
        self._count = 0
        self._free: list[_Block] = []
        self._taken: dict[str, _Block] = {}

    def pack(self, message: object) -> Message:
        """Writes a message.

        Args:
            message: Anything that can be pickled.

        Returns:
            `Message`, to be sent; to be released once it has been read.
        """
        arrays: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(
            message, protocol=5, buffer_callback=arrays.append
        )
        raw = [array.raw() for array in arrays]
        if not raw:
            return Message(pickled, "", ())
        places, end = [], 0
        for each in raw:
            start = -(-end // _ALIGNMENT) * _ALIGNMENT
            places.append((start, each.nbytes))
            end = start + each.nbytes
        block = self._block(end)
        for (start, size), each in zip(places, raw, strict=True):
            block.memory[start : start + size] = each
        return Message(pickled, block.path, tuple(places))

    def release(self, message: Message) -> None:
        """Frees a message that has been read, and its arrays."""
        block = self._taken.pop(message.block, None)
        if block is not None:
            self._free.append(block)

    def close(self) -> None:
        """Frees all memory; no further message can be sent.

        Windows removes no file that is still in some memory.
        """
        for block in [*self._free, *self._taken.values()]:
            block.memory.close()
        self._free.clear()
        self._taken.clear()

    def _block(self, size: int) -> "_Block":
        """Takes the smallest block that is large enough, or makes one."""
        fitting = [each for each in self._free if len(each.memory) >= size]
        if fitting:
            block = min(fitting, key=lambda each: len(each.memory))
            self._free.remove(block)
        else:
            self._count += 1
            path = self._folder / f"{self._name}-{self._count}"
            # Rounded up, so that a growing message rarely needs a new block.
            rounded = max(_SMALLEST, 1 << max(size - 1, 1).bit_length())
            block = _Block.made(path, rounded)
        self._taken[block.path] = block
        return block


class SharedMemoryReceiver:
    """Reads messages that a `SharedMemorySender` of another process wrote."""

    def __init__(self) -> None:
        self._blocks: dict[str, _Block] = {}

    def unpack(self, message: Message) -> Any:
        """Reads a message.

        Args:
            message: `Message`, as it was received.

        Returns:
            The packed value. Its arrays lie in the memory itself, and are valid
            until the message is released.
        """
        if not message.block:
            return pickle.loads(message.pickled)
        if message.block not in self._blocks:
            self._blocks[message.block] = _Block.opened(message.block)
        memory = memoryview(self._blocks[message.block].memory)
        arrays = [
            memory[start : start + size] for start, size in message.places
        ]
        return pickle.loads(message.pickled, buffers=arrays)

    def close(self) -> None:
        """Frees memory, except that of arrays that are still used."""
        for block in self._blocks.values():
            with contextlib.suppress(BufferError):
                block.memory.close()
        self._blocks.clear()


class _Block(NamedTuple):
    """A block of memory, mapped to a file."""

    path: str
    memory: mmap.mmap

    @classmethod
    def made(cls, path: Path, size: int) -> "_Block":
        """Makes a block of a given size."""
        with path.open("xb+") as file:
            if hasattr(os, "posix_fallocate"):
                # Otherwise a full disk would cause a fatal signal.
                os.posix_fallocate(file.fileno(), 0, size)
            file.truncate(size)
            return cls(str(path), mmap.mmap(file.fileno(), size))

    @classmethod
    def opened(cls, path: str) -> "_Block":
        """Opens a block that another process has made."""
        with open(path, "rb+") as file:
            return cls(path, mmap.mmap(file.fileno(), 0))
