"""Arrays from files of PyTorch, without PyTorch and without unpickling.

A file of `torch.save` is a zip: the bytes of each storage, and a pickle that
says which tensors lie in them. A pickle is a program that may call anything.
It is not run here: its instructions are listed (`pickletools.genops`, which
executes none), and those few of which a dict of tensors consists are followed.
Three names may occur in it, and stand for nothing but a form of data; any
other name or instruction is an error.
"""

import collections
import dataclasses
import io
import math
import pickletools
import re
import zipfile
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_rl2.files.plain_archives import check_members

_PROGRAM = "data.pkl"
# A policy of a thousand layers.
_MOST_PROGRAM_BYTES = 2**20
_MOST_TENSORS = 2**12
_MEMBER = re.compile(
    r"(?P<folder>[^/\\]+)/(?:(?P<storage>data/\d+)|"
    r"(?P<plain>data\.pkl|byteorder|version|\.format_version"
    r"|\.storage_alignment|\.data/serialization_id))"
)
_STORAGES = {
    "torch DoubleStorage": "<f8",
    "torch FloatStorage": "<f4",
    "torch HalfStorage": "<f2",
    "torch LongStorage": "<i8",
    "torch IntStorage": "<i4",
    "torch ShortStorage": "<i2",
    "torch CharStorage": "|i1",
    "torch ByteStorage": "|u1",
    "torch BoolStorage": "|b1",
}
_DICT = "collections OrderedDict"
_TENSOR = "torch._utils _rebuild_tensor_v2"
_MARK = object()


@dataclasses.dataclass(frozen=True)
class _Name:
    """A name that a program mentions."""

    name: str


@dataclasses.dataclass(frozen=True)
class _Storage:
    """Bytes that tensors lie in."""

    member: str
    dtype: str
    count: int


@dataclasses.dataclass(frozen=True)
class _Tensor:
    """Where a tensor lies in a storage."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def read_torch_arrays(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """Reads a dict of tensors that `torch.save` wrote.

    Args:
        content: bytes. The file.

    Returns:
        dict of arrays, by their names, in their order.

    Raises:
        ValueError: If it is anything but a dict of tensors.
    """
    try:
        file = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile as error:
        raise ValueError(
            f"no file of PyTorch 1.6 or later ({error})"
        ) from error
    with file:
        folder = _check(file, len(content))
        tensors = _tensors(file.read(f"{folder}/{_PROGRAM}"))
        storages = {
            storage: _read(file, folder, storage)
            for storage in {tensor.storage for tensor in tensors.values()}
        }
    # What has several names, as a part that two networks share, is one array.
    distinct = set(tensors.values())
    numbers = sum(storage.count for storage in storages)
    if sum(math.prod(tensor.shape) for tensor in distinct) > numbers:
        raise ValueError(f"more weights than the {numbers:,} in the file")
    arrays = {
        tensor: _array(tensor, storages[tensor.storage]) for tensor in distinct
    }
    return {name: arrays[tensor] for name, tensor in tensors.items()}


def _check(file: zipfile.ZipFile, size: int) -> str:
    """Looks at the members of the zip, and returns their folder."""
    members = file.infolist()
    found = [_MEMBER.fullmatch(member.filename) for member in members]
    folders = {match["folder"] if match else None for match in found}
    names = {member.filename for member in members}
    [folder] = folders if len(folders) == 1 else [None]
    if folder is None or f"{folder}/{_PROGRAM}" not in names:
        shown = ", ".join(map(repr, sorted(names)[:4]))
        raise ValueError(f"no file of PyTorch: a zip with members {shown}")
    check_members(members, size, {f"{folder}/{_PROGRAM}": _MOST_PROGRAM_BYTES})
    order = f"{folder}/byteorder"
    if order in names and file.read(order) != b"little":
        raise ValueError("weights whose bytes are not little-endian")
    return folder


def _read(
    file: zipfile.ZipFile, folder: str, storage: _Storage
) -> npt.NDArray[Any]:
    """Reads the numbers of a storage."""
    dtype = np.dtype(storage.dtype)
    try:
        content = file.read(f"{folder}/data/{storage.member}")
    except (KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"weights that cannot be read: {error}") from error
    if len(content) != storage.count * dtype.itemsize:
        raise ValueError(
            f"a storage of {storage.count:,} numbers of {dtype}, with "
            f"{len(content):,} bytes in the file"
        )
    return np.frombuffer(content, dtype)


def _array(tensor: _Tensor, storage: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Cuts a tensor out of its storage, and nothing that is beside it."""
    count = math.prod(tensor.shape)
    pairs = zip(tensor.shape, tensor.strides, strict=True)
    last = tensor.offset + sum((n - 1) * stride for n, stride in pairs)
    if count > storage.size or (count and last >= storage.size):
        raise ValueError(
            f"a tensor of shape {tensor.shape}, which is more than its "
            f"{storage.size:,} numbers"
        )
    if not count:
        return np.zeros(tensor.shape, storage.dtype)
    # A view, which is copied at once: in native order, contiguous.
    view = np.lib.stride_tricks.as_strided(
        storage[tensor.offset :],
        tensor.shape,
        [stride * storage.itemsize for stride in tensor.strides],
        writeable=False,
    )
    return np.array(view, storage.dtype.newbyteorder("="), order="C")


def _tensors(program: bytes) -> dict[str, _Tensor]:
    """Follows the instructions of a pickle that makes a dict of tensors."""
    reader = _Program()
    try:
        for opcode, argument, _ in pickletools.genops(program):
            reader.follow(opcode.name, argument)
        result = reader.result()
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError(
            f"a pickle that is damaged ({type(error).__name__})"
        ) from error
    if not isinstance(result, dict) or len(result) > _MOST_TENSORS:
        raise ValueError(f"a {type(result).__name__}, which is no dict of them")
    for name, tensor in result.items():
        if not isinstance(tensor, _Tensor):
            raise ValueError(f"{name!r}, which is no tensor")
    return result


class _Program:
    """The stack that instructions of a pickle work on, of data only."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._ended = False

    def result(self) -> Any:
        """Returns what is left at the end."""
        if not self._ended or len(self._stack) != 1:
            raise ValueError("a pickle that is not whole")
        return self._stack[0]

    def follow(self, name: str, argument: Any) -> None:
        """Follows one instruction."""
        stack = self._stack
        if name in ("BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1"):
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name == "MARK":
            stack.append(_MARK)
        elif name == "GLOBAL":
            stack.append(_Name(_known(argument)))
        elif name in ("BINPUT", "LONG_BINPUT"):
            self._memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif name in _TUPLES:
            count = _TUPLES[name]
            items = self._since_mark() if count is None else self._last(count)
            stack.append(tuple(items))
        elif name == "BINPERSID":
            stack.append(_storage(stack.pop()))
        elif name == "REDUCE":
            arguments, called = stack.pop(), stack.pop()
            stack.append(_made(called, arguments))
        elif name == "SETITEM":
            self._set(self._last(2))
        elif name == "SETITEMS":
            self._set(self._since_mark())
        elif name == "BUILD":
            # Of a state dict: the versions of its modules.
            if not isinstance(stack.pop(), dict):
                raise ValueError("a pickle with a state that is no dict")
        elif name == "STOP":
            self._ended = True
        elif name != "PROTO":
            raise ValueError(f"a pickle with the instruction {name}")

    def _last(self, count: int) -> list[Any]:
        """Takes so many things off the stack."""
        items = self._stack[-count:]
        if len(items) != count or any(item is _MARK for item in items):
            raise IndexError
        del self._stack[-count:]
        return items

    def _since_mark(self) -> list[Any]:
        """Takes what has come since the last mark off the stack."""
        items: list[Any] = []
        while (item := self._stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def _set(self, items: list[Any]) -> None:
        """Puts names and values into the dict that is on the stack."""
        target = self._stack[-1]
        if type(target) not in (dict, collections.OrderedDict):
            raise TypeError
        for name, value in zip(items[::2], items[1::2], strict=True):
            # Of another type, it might take long to be hashed.
            if type(name) is not str:
                raise TypeError
            target[name] = value


_CONSTANTS = {
    "NONE": None,
    "NEWTRUE": True,
    "NEWFALSE": False,
    "EMPTY_TUPLE": (),
}
_TUPLES = {"TUPLE": None, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def _known(name: str) -> str:
    """Refuses a name that a dict of tensors has no need of."""
    if name not in (_DICT, _TENSOR) and name not in _STORAGES:
        raise ValueError(f"a pickle that asks for {name!r}")
    return name


def _storage(described: Any) -> _Storage:
    """Takes what the pickle says of a storage."""
    kind, named, key, _, count = described
    if (
        kind != "storage"
        or not isinstance(named, _Name)
        or named.name not in _STORAGES
        or not (isinstance(key, str) and key.isascii() and key.isdecimal())
        or not _is_count(count)
    ):
        raise ValueError("a pickle with something else than a storage")
    return _Storage(key, _STORAGES[named.name], count)


def _made(called: Any, arguments: Any) -> Any:
    """Makes what a call of one of the known names would."""
    if called == _Name(_DICT) and arguments == ():
        return collections.OrderedDict()
    if called != _Name(_TENSOR):
        raise ValueError("a pickle that calls what it must not")
    storage, offset, shape, strides, _, _ = arguments
    if (
        not isinstance(storage, _Storage)
        or not _is_count(offset)
        or not all(map(_is_count, (*shape, *strides)))
        or len(shape) != len(strides)
        or len(shape) > 8
    ):
        raise ValueError("a pickle with something else than a tensor")
    return _Tensor(storage, offset, tuple(shape), tuple(strides))


def _is_count(value: Any) -> bool:
    """Whether something is a number that a file can have so many of."""
    return type(value) is int and 0 <= value < 2**48
