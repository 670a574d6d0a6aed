"""A dict of tensors is read; anything else in a pickle raises an error."""

import pickle
import subprocess
import zipfile

import numpy as np
import pytest

from keras_rl2.migrate.sb3_file import read_torch_arrays
from support.torch_files import number
from support.torch_files import packed
from support.torch_files import program
from support.torch_files import saved
from support.torch_files import tensor
from support.torch_files import text

SIX = np.arange(6, dtype="float32")


def one(instructions, **members):
    """Returns a file with one tensor, by its instructions, in six numbers."""
    return packed(program({"x": instructions}), {0: SIX}, **members)


def test_arrays_are_read_with_names_shapes_and_dtypes():
    arrays = {
        "a.weight": np.arange(12, dtype="float32").reshape(3, 4),
        "a.bias": np.array([1.5], "float32"),
        "steps": np.array(7, "int64"),
    }
    found = read_torch_arrays(saved(arrays))
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


def test_strides_and_offsets_are_followed():
    turned = one(tensor(0, 6, (3, 2), strides=(1, 3)))
    np.testing.assert_array_equal(
        read_torch_arrays(turned)["x"], SIX.reshape(2, 3).T
    )
    last = one(tensor(0, 6, (2,), offset=4))
    np.testing.assert_array_equal(read_torch_arrays(last)["x"], [4.0, 5.0])


class _Calls:
    """Pickles as a call."""

    def __reduce__(self):
        return subprocess.check_call, (["touch", "canary"],)


HIDING = (
    b"\x80\x02ccollections\nOrderedDict\n)R"
    + (text("x") + number(3) + b"s")
    # The attribute `values` would hide the method of the dict.
    + (b"}" + text("values") + b"ccollections\nOrderedDict\nsb.")
)

HOSTILE = {
    "a call": (
        packed(pickle.dumps({"x": _Calls()}, 2, fix_imports=False), {}),
        "would call subprocess.check_call",
    ),
    "an attribute that hides a method": (
        packed(HIDING, {}),
        "no dict of tensors",
    ),
    "a class of torch": (one(b"ctorch.nn\nLinear\n)R"), "would call torch.nn"),
    "a number": (one(number(3)), "no dict of tensors"),
    "a list": (packed(b"\x80\x02]q\x00.", {}), "no dict of tensors"),
    "more than there is": (one(tensor(0, 6, (7,))), "in 6 numbers"),
    "one number a million times": (
        one(tensor(0, 6, (10**6,), strides=(0,))),
        "in 6 numbers",
    ),
    "beyond the end": (
        one(tensor(0, 6, (2,), offset=5)),
        "strides is incompatible",
    ),
    "a path": (one(tensor("../../x", 6, (6,))), "no item named"),
    "no zip": (b"\x80\x02}q\x00.", "not a zip file"),
}


def test_anything_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, (content, reason) in HOSTILE.items():
        with pytest.raises(
            (ValueError, KeyError, TypeError, zipfile.BadZipFile), match=reason
        ):
            read_torch_arrays(content)
        assert not list(tmp_path.iterdir()), name
