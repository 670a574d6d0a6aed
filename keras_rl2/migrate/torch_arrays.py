"""Arrays from files of PyTorch, read by PyTorch as plain data."""

import importlib
import io
import zipfile
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_rl2.files.plain_archives import check_members

_LOWEST = "2.6"
_PROGRAM = "data.pkl"
# Enough for a policy of a thousand layers.
_MOST_PROGRAM_BYTES = 2**20


def read_torch_arrays(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """Reads a dict of tensors that `torch.save` wrote.

    PyTorch reads it with `weights_only=True`: a pickle with anything but
    tensors and plain data raises an error, and no code in it is run.

    Args:
        content: bytes. The file.

    Returns:
        dict of arrays by name, in the order of the file. Tensors with shared
        storage share one array.

    Raises:
        ImportError: If PyTorch 2.6 or later is not installed.
        ValueError: If it is anything but a dict of tensors.
    """
    torch = _torch()
    _check_archive(content)
    try:
        found = torch.load(
            io.BytesIO(content), map_location="cpu", weights_only=True
        )
    except Exception as error:
        # The error's type varies, and PyTorch's message advises to unpickle the
        # file.
        raise ValueError(
            "weights that `torch.load(weights_only=True)` cannot read "
            f"({type(error).__name__})"
        ) from error
    if not isinstance(found, dict):
        raise ValueError(f"a {type(found).__name__}, which is no dict of them")
    tensors: dict[Any, Any] = {}
    keys: dict[str, Any] = {}
    for name, tensor in found.items():
        if not isinstance(tensor, torch.Tensor) or tensor.is_meta:
            raise ValueError(f"{name!r:.80}, which is no tensor")
        tensor = tensor.detach()
        keys[name] = (
            *(tensor.data_ptr(), tensor.dtype),
            *(tensor.shape, tensor.stride()),
        )
        tensors[keys[name]] = tensor
    # A tensor may repeat a few numbers to fill a large shape.
    size = sum(each.numel() * each.element_size() for each in tensors.values())
    if size > len(content):
        raise ValueError(f"{size:,} bytes of weights in {len(content):,}")
    arrays = {key: np.array(each.numpy()) for key, each in tensors.items()}
    return {name: arrays[key] for name, key in keys.items()}


def _torch() -> Any:
    """Returns the module of PyTorch."""
    expected = (
        f"Expected PyTorch {_LOWEST} or later, which reads files of "
        'Stable-Baselines3: pip install "keras-rl2-fit[sb3]". Received: '
    )
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(f"{expected}{error}") from error
    # Before 2.6, `weights_only=True` could be made to run code
    # (CVE-2025-32434).
    if torch.__version__ < _LOWEST:
        raise ImportError(f"{expected}PyTorch {torch.__version__}")
    return torch


def _check_archive(content: bytes) -> None:
    """Raises an error for a zip file that would fill the memory."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            members = file.infolist()
    except zipfile.BadZipFile as error:
        raise ValueError(
            f"no file of PyTorch 1.6 or later ({error})"
        ) from error
    programs = [
        member.filename
        for member in members
        if member.filename.endswith(_PROGRAM)
    ]
    check_members(
        members, len(content), dict.fromkeys(programs, _MOST_PROGRAM_BYTES)
    )
