"""The zip file that Stable-Baselines3 saves, read as plain data."""

import importlib
import io
import math
import os
import re
import zipfile
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.spaces import Box

from keras_rl2.files.plain_files import check_members
from keras_rl2.files.plain_files import parse_json
from keras_rl2.files.plain_files import require_file
from keras_rl2.spaces.space_configs import space_from_config


class LinearFall(NamedTuple):
    """A number that changes evenly over the first part of a run.

    Attributes:
        start: float. The first value.
        end: float. The last value, constant for the rest of the run.
        end_fraction: float. The part of the run in which the value changes.

    Example:

    >>> LinearFall(start=1e-3, end=0.0, end_fraction=0.5).end
    0.0
    """

    start: float
    end: float
    end_fraction: float


_DATA = "data"
_POLICY = "policy.pth"
_VARIABLES = "pytorch_variables.pth"
_MOST_DATA_BYTES = 2**24
_MOST_FILE_BYTES = 2**31
_CONSTANT = re.compile(r"ConstantSchedule\(val=([-+0-9.e]+)\)")
_LINEAR = re.compile(
    r"LinearSchedule\(start=([-+0-9.e]+), end=([-+0-9.e]+), "
    r"end_fraction=([-+0-9.e]+)\)"
)
# The file does not name the algorithm: a setting unique to it identifies it.
_TELLTALES = {
    "clip_range": "PPO",
    "policy_delay": "TD3",
    "target_entropy": "SAC",
    "exploration_fraction": "DQN",
    "gae_lambda": "A2C",
}


class SB3File:
    """The content of a file of Stable-Baselines3, without its pickles.

    The file stores objects as pickles, each with a summary in text. Only the
    summaries are read.

    Args:
        path: str or path. The zip file.

    Attributes:
        algorithm: str. `"PPO"`, `"A2C"`, `"DQN"`, `"SAC"` or `"TD3"` (also of
            DDPG, which Stable-Baselines3 derives from it).
        weights: dict of arrays. Weights of the policy, by PyTorch's names.

    Raises:
        ValueError: If the file is of another kind.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        size = require_file(path)
        if size > _MOST_FILE_BYTES:
            raise ValueError(f"a file of {size:,} bytes")
        with open(path, "rb") as opened:
            try:
                file = zipfile.ZipFile(io.BytesIO(opened.read()))
            except zipfile.BadZipFile as error:
                raise ValueError(f"no zip file ({error})") from error
        with file:
            check_members(file.infolist(), size, {_DATA: _MOST_DATA_BYTES})
            names = set(file.namelist())
            if not {_DATA, _POLICY} <= names:
                shown = ", ".join(map(repr, sorted(names)[:4]))
                raise ValueError(
                    f"a zip with members {shown}, of which none is "
                    f"{_DATA!r} or none {_POLICY!r}"
                )
            data = parse_json(file.read(_DATA), _DATA)
            self.weights = read_torch_arrays(file.read(_POLICY))
            self._variables = {}
            if _VARIABLES in names:
                self._variables = read_torch_arrays(file.read(_VARIABLES))
        if not isinstance(data, dict):
            raise ValueError(f"{_DATA!r} that is no dict")
        self._data: dict[str, Any] = data
        self.algorithm = self._find_algorithm()
        for name, array in self.weights.items():
            if not np.isfinite(array).all():
                raise ValueError(f"weights that are not finite, in {name}")

    def _find_algorithm(self) -> str:
        """Returns the algorithm with the given settings."""
        for name, algorithm in _TELLTALES.items():
            if name in self._data:
                return algorithm
        raise ValueError("settings of none of PPO, A2C, DQN, SAC, TD3 and DDPG")

    def number(self, name: str) -> float | None:
        """Returns a setting that is a number or a constant schedule.

        Args:
            name: str. Name of the setting.

        Returns:
            float, or None if it is missing or anything else.

        Raises:
            ValueError: If the number is not finite.
        """
        value = self._data.get(name)
        if isinstance(value, dict):
            found = _CONSTANT.fullmatch(str(value.get("value_schedule")))
            value = float(found[1]) if found else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if not math.isfinite(value):
            raise ValueError(f"settings with {name}={value}")
        return value

    def linear_fall(self, name: str) -> LinearFall | None:
        """Returns a setting that is a `LinearSchedule`.

        Args:
            name: str. Name of the setting.

        Returns:
            `LinearFall`, or None if it is anything else.

        Raises:
            ValueError: If its numbers are not finite, or its fraction is
                invalid.
        """
        value = self._data.get(name)
        if not isinstance(value, dict):
            return None
        found = _LINEAR.fullmatch(str(value.get("value_schedule")))
        numbers: list[Any] = [value.get(each) for each in LinearFall._fields]
        if found is not None:
            numbers = [float(each) for each in found.groups()]
        if not all(type(each) in (int, float) for each in numbers):
            return None
        fall = LinearFall(*map(float, numbers))
        if not all(map(math.isfinite, fall)) or not 0 < fall.end_fraction <= 1:
            raise ValueError(f"settings with {name}={fall}")
        return fall

    def has_object(self, name: str) -> bool:
        """Returns whether a setting is a pickled object.

        Args:
            name: str. Name of the setting.
        """
        return isinstance(self._data.get(name), dict)

    def flag(self, name: str) -> bool:
        """Returns whether a setting is true; a missing one is false."""
        return self._data.get(name) is True

    def summary(self, name: str) -> Mapping[str, Any]:
        """Returns the summary of an object.

        Args:
            name: str. Name of the setting.

        Returns:
            Mapping of the plain data stored next to its pickle.

        Raises:
            ValueError: If the setting is missing or is not an object.
        """
        value = self._data.get(name)
        if not isinstance(value, dict):
            raise ValueError(f"settings without {name!r}")
        return {key: each for key, each in value.items() if key != _PICKLE}

    def variable(self, name: str) -> npt.NDArray[Any] | None:
        """Returns a variable that is not part of a network, or None."""
        return self._variables.get(name)


_PICKLE = ":serialized:"


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


_CLASS = re.compile(r"<class '(?:gym|gymnasium)\.spaces\.\w+\.(\w+)'>")
# NumPy's mark for omitted numbers.
_LEFT_OUT = "..."


def read_space(summary: Mapping[str, Any]) -> Space[Any]:
    """Makes a space from its summary.

    The summary lists only some bounds of a large Box: if these are all equal,
    the others are assumed to be equal too; else the Box has no bounds.

    Args:
        summary: Mapping of class and attributes, mostly as strings.

    Returns:
        `gymnasium.Space`.

    Raises:
        ValueError: If the space is not a Box, Discrete, MultiDiscrete or
            MultiBinary.

    Example:

    >>> read_space({
    ...     ":type:": "<class 'gymnasium.spaces.box.Box'>", "dtype": "float32",
    ...     "_shape": [2], "low": "[-1.  0.]", "high": "[0.3 2. ]"})
    Box([-1.  0.], [0.3 2. ], (2,), float32)
    """
    found = _CLASS.fullmatch(str(summary.get(":type:")))
    kind = found[1] if found else None
    if kind == "Box":
        return _box(summary)
    config: dict[str, Any] = {"type": kind, "dtype": "int64"}
    if kind == "Discrete":
        for name in ("n", "start"):
            config[name] = int(summary.get(name, 0))
    elif kind == "MultiDiscrete":
        shape = tuple(summary["_shape"])
        for name in ("nvec", "start"):
            text = str(summary.get(name, np.zeros(shape, "int64")))
            numbers = _numbers(text, shape)
            if numbers is None:
                raise ValueError(f"a MultiDiscrete space with {name}={text}")
            config[name] = numbers.astype("int64").tolist()
    elif kind == "MultiBinary":
        config = {"type": kind, "shape": summary["_shape"]}
    else:
        raise ValueError(
            f"a space {summary.get(':type:')}: expected a Box, Discrete, "
            "MultiDiscrete or MultiBinary"
        )
    return space_from_config(config)


def _box(summary: Mapping[str, Any]) -> Space[Any]:
    """Makes a Box."""
    config = {"type": "Box", "shape": summary["_shape"], "low": 0, "high": 0}
    # Checks shape and dtype before memory of that size is allocated.
    like = space_from_config({**config, "dtype": summary["dtype"]})
    dtype, shape = np.dtype(str(like.dtype)), tuple(like.shape or ())
    widest = (-np.inf, np.inf)
    if dtype.kind in "iu":
        widest = (np.iinfo(dtype).min, np.iinfo(dtype).max)
    bounds = [_numbers(str(summary[side]), shape) for side in ("low", "high")]
    low, high = (
        np.full(shape, wide if found is None else found, dtype)
        for wide, found in zip(widest, bounds, strict=True)
    )
    return Box(low, high, shape, dtype.type)


def _numbers(
    text: str, shape: tuple[int, ...]
) -> npt.NDArray[np.float64] | None:
    """Parses an array printed by NumPy.

    Args:
        text: str.
        shape: tuple of ints. The expected shape.

    Returns:
        Array of the shape, or None if the text is incomplete.

    Raises:
        ValueError: If the text has anything but numbers, or too many of them.
    """
    words = text.replace("[", " ").replace("]", " ").split()
    numbers = np.array([float(each) for each in words if each != _LEFT_OUT])
    if np.isnan(numbers).any():
        raise ValueError("bounds that are no numbers")
    if _LEFT_OUT not in words:
        return numbers.reshape(shape)
    if numbers.size and (numbers == numbers[0]).all():
        return np.full(shape, numbers[0])
    return None
