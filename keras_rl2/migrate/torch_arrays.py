"""Weights that `torch.save` wrote, read without PyTorch.

The file is a zip: the numbers of each tensor in a member, and a pickle that
says which are whose. The pickle is not loaded: its few kinds of instructions
are followed here, and any other one is refused.
"""

import io
import math
import pickletools
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_PROGRAM = "/data.pkl"
_DICT = "collections OrderedDict"
_TENSOR = "torch._utils _rebuild_tensor_v2"
_STORAGES = {
    "torch FloatStorage": "<f4",
    "torch DoubleStorage": "<f8",
    "torch LongStorage": "<i8",
}


def read_torch_arrays(content: bytes) -> dict[str, Array]:
    """Reads a dict of tensors.

    Args:
        content: bytes. The file.

    Returns:
        dict of arrays by name, in the order of the file.

    Raises:
        ValueError: If it is anything but a dict of tensors of float32, float64
            or int64.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        programs = [n for n in file.namelist() if n.endswith(_PROGRAM)]
        if len(programs) != 1:
            raise ValueError("weights of another format than PyTorch's")
        folder = programs[0].removesuffix(_PROGRAM)
        found = _follow(
            file.read(programs[0]),
            lambda key: file.read(f"{folder}/data/{key}"),
        )
    if not isinstance(found, dict) or not all(
        isinstance(array, np.ndarray) for array in found.values()
    ):
        raise ValueError("weights that are no dict of tensors")
    return found


def _follow(program: bytes, read: Callable[[str], bytes]) -> Any:
    """Returns what a pickle describes, with arrays in place of tensors."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[Any, Any] = {}

    def popped(at: int) -> tuple[Any, ...]:
        items = tuple(stack[at:])
        del stack[at:]
        return items

    for instruction, argument, _ in pickletools.genops(program):
        match instruction.name:
            case "GLOBAL" | "BINUNICODE" | "BININT" | "BININT1" | "BININT2":
                stack.append(argument)
            case "NEWTRUE" | "NEWFALSE" | "EMPTY_TUPLE":
                stack.append(())
            case "EMPTY_DICT":
                stack.append({})
            case "MARK":
                marks.append(len(stack))
            case "TUPLE":
                stack.append(popped(marks.pop()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(popped(-int(instruction.name[-1])))
            case "SETITEM":
                items = popped(-2)
                stack[-1].update([items])
            case "SETITEMS":
                items = popped(marks.pop())
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "BINPERSID":
                _, dtype, key, *_ = stack.pop()
                stack.append(np.frombuffer(read(key), _STORAGES[dtype]))
            case "REDUCE":
                stack.append(_made(*popped(-2)))
            case "BUILD":
                # Attributes of the dict: the versions of PyTorch's modules.
                stack.pop()
            case other if other not in ("PROTO", "STOP"):
                raise ValueError(f"weights with the instruction {other}")
    return stack.pop()


def _made(function: str, arguments: tuple[Any, ...]) -> Any:
    """Returns what a call of a function would return."""
    if function == _DICT and not arguments:
        return {}
    if function != _TENSOR:
        raise ValueError(f"weights that would call {function}")
    storage, offset, shape, strides, *_ = arguments
    # Strides could repeat a few numbers to fill a large shape.
    if math.prod(shape) > storage.size:
        raise ValueError(f"a tensor of shape {shape} in {storage.size} numbers")
    size = storage.itemsize
    steps = [each * size for each in strides]
    return np.ndarray(shape, storage.dtype, storage, offset * size, steps)
