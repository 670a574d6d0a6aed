"""The zip file that Stable-Baselines3 saves, read as plain data."""

import io
import math
import os
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from keras_rl2.files.plain_archives import check_members
from keras_rl2.files.plain_files import parse_json
from keras_rl2.files.plain_files import require_file
from keras_rl2.migrate.linear_fall import LinearFall
from keras_rl2.migrate.torch_arrays import read_torch_arrays

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
