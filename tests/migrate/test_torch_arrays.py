"""A dict of tensors is read; whatever else a pickle can do is refused."""

import pickle
import subprocess
import zipfile

import numpy as np
import pytest

from keras_rl2.migrate.torch_arrays import read_torch_arrays
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


def test_a_tensor_of_two_names_is_one():
    same = tensor(0, 6, (6,))
    content = packed(program({"x": same, "y": same}), {0: SIX})
    found = read_torch_arrays(content)
    assert found["x"] is found["y"]


class _Calls:
    """Pickles as a call."""

    def __reduce__(self):
        return subprocess.check_call, (["touch", "canary"],)


HOSTILE = {
    "a call": (
        packed(pickle.dumps({"x": _Calls()}, 2), {}),
        "asks for '.* check_call'",
    ),
    "a class of torch": (
        one(b"ctorch.nn\nLinear\n)R"),
        "asks for 'torch.nn Linear'",
    ),
    "a newer protocol": (
        packed(pickle.dumps({"x": 1}, 4), {}),
        "the instruction",
    ),
    "a storage that is called": (one(b"ctorch\nFloatStorage\n)R"), "calls"),
    "a number": (one(number(3)), "which is no tensor"),
    "no dict": (packed(b"\x80\x02]q\x00.", {}), "instruction EMPTY_LIST"),
    "a half": (packed(program({"x": text("y")})[:-1], {}), "STOP|exhausted"),
    "no mark": (packed(b"\x80\x02t.", {}), "damaged|stack"),
    "a state": (one(text("y") + text("z") + b"b"), "state that is no dict"),
    "a name that is a tuple": (
        packed(b"\x80\x02}(" + b")" * 2 + b"\x85\x85u.", {}),
        "damaged",
    ),
    "more than there is": (one(tensor(0, 6, (7,))), "more weights than the 6"),
    "beyond the end": (one(tensor(0, 6, (2,), offset=5)), "more than its 6"),
    "before the start": (one(tensor(0, 6, (2,), offset=-1)), "a tensor"),
    "strides beyond": (one(tensor(0, 6, (2,), strides=(6,))), "more than its"),
    "strides back": (one(tensor(0, 6, (2,), strides=(-1,))), "a tensor"),
    "one number a million times": (
        one(tensor(0, 6, (10**6,), strides=(0,))),
        "more weights than the 6",
    ),
    "a size beyond all": (one(tensor(0, 2**60, (2**60,))), "a storage"),
    "another size": (one(tensor(0, 5, (5,))), "5 numbers of float32, with 24"),
    "no such storage": (one(tensor(1, 6, (6,))), "cannot be read"),
    "a path": (
        one(tensor("../../x", 6, (6,))),
        "something else than a storage",
    ),
    "many views of a few numbers": (
        packed(
            program(
                {str(k): tensor(0, 6, (5,), offset=k % 2) for k in range(9)}
            ),
            {0: SIX},
        ),
        "more weights than the 6",
    ),
    "big endian": (one(tensor(0, 6, (6,)), order="big"), "little-endian"),
    "a member beside": (
        one(tensor(0, 6, (6,)), **{"../x": b"y"}),
        "a zip with members",
    ),
    "code": (one(tensor(0, 6, (6,)), **{"archive/code/x.py": b"y"}), "a zip"),
    "no zip": (b"\x80\x02}q\x00.", "no file of PyTorch 1.6"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_anything_else_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content, reason = HOSTILE[name]
    with pytest.raises(ValueError, match=reason):
        read_torch_arrays(content)
    assert not list(tmp_path.iterdir())


def test_a_bomb_is_refused(tmp_path):
    path = tmp_path / "bomb.pth"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(
            "archive/data.pkl", program({"x": tensor(0, 2**22, (1,))})
        )
        file.writestr("archive/data/0", bytes(2**24))
    with pytest.raises(ValueError, match="would be 16,777,216 bytes"):
        read_torch_arrays(path.read_bytes())
