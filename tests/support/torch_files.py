"""Files as PyTorch writes them, honest and not, made without PyTorch."""

import io
import pickle
import struct
import zipfile

import numpy as np

STORAGES = {"float32": b"FloatStorage", "int64": b"LongStorage"}


def text(value):
    """Returns the instruction that puts a string on the stack."""
    encoded = value.encode()
    return b"X" + struct.pack("<I", len(encoded)) + encoded


def number(value):
    """Returns the instruction that puts a number on the stack."""
    if value < 2**31:
        return b"J" + struct.pack("<i", value)
    return pickle.dumps(value, 2)[2:-1]


def numbers(values):
    """Returns the instructions of a tuple of numbers."""
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(key, count, shape, strides=None, offset=0, kind=b"FloatStorage"):
    """Returns the instructions of a tensor in a storage."""
    if strides is None:
        strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n(("
        + text("storage")
        + b"ctorch\n"
        + kind
        + b"\n"
        + text(str(key))
        + text("cpu")
        + number(count)
        + b"tQ"
        + number(offset)
        + numbers(shape)
        + numbers(strides)
        + b"\x89ccollections\nOrderedDict\n)RtR"
    )


def program(tensors):
    """Returns the pickle of a dict of tensors, given as instructions."""
    items = b"".join(text(name) + each for name, each in tensors.items())
    return b"\x80\x02ccollections\nOrderedDict\n)R(" + items + b"u."


def packed(pickled, storages, folder="archive", **members):
    """Returns the bytes of a file of given parts."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr(f"{folder}/data.pkl", pickled)
        file.writestr(f"{folder}/version", "3\n")
        file.writestr(f"{folder}/byteorder", members.pop("order", "little"))
        for key, array in storages.items():
            file.writestr(f"{folder}/data/{key}", np.asarray(array).tobytes())
        for name, member in members.items():
            file.writestr(name, member)
    return content.getvalue()


def saved(arrays):
    """Returns the file of a dict of arrays."""
    tensors, storages = {}, {}
    for key, (name, array) in enumerate(arrays.items()):
        kind = STORAGES[array.dtype.name]
        tensors[name] = tensor(key, array.size, array.shape, kind=kind)
        storages[key] = array
    return packed(program(tensors), storages)
