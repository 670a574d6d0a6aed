"""A dict of tensors is read; anything else in a pickle raises an error."""

import pickle
import subprocess
import sys
import types
import zipfile

import numpy as np
import pytest

from keras_rl2.migrate.sb3_file import read_torch_arrays
from support.torch_files import number
from support.torch_files import packed
from support.torch_files import program
from support.torch_files import saved
from support.torch_files import tensor

TorchVersion = pytest.importorskip("torch.torch_version").TorchVersion
SIX = np.arange(6, dtype="float32")


def one(instructions, **members):
    """Returns a file with one tensor, by its instructions, in six numbers."""
    return packed(program({"x": instructions}), {0: SIX}, **members)


def test_arrays_are_read_with_names_shapes_and_dtypes():
    arrays = {
        "a.weight": np.arange(12, dtype="float32").reshape(3, 4),
        "a.bias": np.array([1.5], "float32"),
        "steps": np.array(7, "int64"),
        "none": np.zeros((0, 3), "float32"),
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


UNREAD = "weights_only=True.* cannot read"
# What is refused by PyTorch, and what by us.
HOSTILE = {
    "a call": (packed(pickle.dumps({"x": _Calls()}, 2), {}), UNREAD),
    "a class of torch": (one(b"ctorch.nn\nLinear\n)R"), UNREAD),
    "a number": (one(number(3)), "which is no tensor"),
    "no dict": (packed(b"\x80\x02]q\x00.", {}), "no dict of them"),
    "a name that is a tuple": (
        packed(b"\x80\x02}(" + b")" * 2 + b"\x85\x85u.", {}),
        "which is no tensor",
    ),
    "more than there is": (one(tensor(0, 6, (7,))), UNREAD),
    "one number a million times": (
        one(tensor(0, 6, (10**6,), strides=(0,))),
        "4,000,000 bytes of weights",
    ),
    "a path": (one(tensor("../../x", 6, (6,))), UNREAD),
    "no zip": (b"\x80\x02}q\x00.", "no file of PyTorch 1.6"),
}


def test_anything_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, (content, reason) in HOSTILE.items():
        with pytest.raises(ValueError, match=reason):
            read_torch_arrays(content)
        assert not list(tmp_path.iterdir()), name


def test_a_bomb_is_refused(tmp_path):
    path = tmp_path / "bomb.pth"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(
            "archive/data.pkl", program({"x": tensor(0, 2**22, (1,))})
        )
        file.writestr("archive/data/0", bytes(2**24))
    with pytest.raises(ValueError, match="would be 16,777,216 bytes"):
        read_torch_arrays(path.read_bytes())


def test_an_older_pytorch_is_not_used(monkeypatch):
    torch = types.SimpleNamespace(__version__=TorchVersion("2.5.1"))
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(ImportError, match=r"Expected PyTorch 2.6.*2\.5\.1"):
        read_torch_arrays(b"")
