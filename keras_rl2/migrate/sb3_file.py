"""The zip file that Stable-Baselines3 saves, read as plain data."""

import io
import json
import math
import os
import pickle
import re
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_CONSTANT = re.compile(r"ConstantSchedule\(val=([-+0-9.e]+)\)")
# The file does not name the algorithm: a setting unique to it identifies it.
_TELLTALES = (
    *(("clip_range", "PPO"), ("policy_delay", "TD3")),
    *(("target_entropy", "SAC"), ("exploration_fraction", "DQN")),
    ("gae_lambda", "A2C"),
)
# Numbers with the same meaning in both libraries.
_NUMBERS = {
    "clip_range": "clip_ratio",
    "clip_range_vf": "value_clip_range",
    "ent_coef": "entropy_coefficient",
    "exploration_final_eps": "epsilon",
    "gae_lambda": "gae_lambda",
    "gamma": "gamma",
    "max_grad_norm": "max_gradient_norm",
    "policy_delay": "policy_delay",
    "target_entropy": "target_entropy",
    "target_kl": "target_kl",
    "target_noise_clip": "target_noise_clip",
    "target_policy_noise": "target_noise",
    "tau": "tau",
    "vf_coef": "value_coefficient",
}
# Default steps of each environment per round of updates of DQN, since the
# setting is in a pickle.
_DQN_TRAIN_FREQ = 4
# It replaces a temperature of 0, whose logarithm is not finite.
_LEAST_TEMPERATURE = 1e-12
# Names in the zip that `torch.save` writes.
_PROGRAM = "/data.pkl"
_STORAGES = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "LongStorage": "<i8",
}


class SB3File:
    """The content of a file of Stable-Baselines3.

    Of objects that the file stores as pickles, only summaries in text are read.

    Attributes:
        algorithm: str. `"PPO"`, `"A2C"`, `"DQN"`, `"SAC"` or `"TD3"`.
        data: dict. Its settings.
        weights: dict of arrays. Weights of the policy, by PyTorch's names.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        with zipfile.ZipFile(path) as file:
            self.data: dict[str, Any] = json.loads(file.read("data"))
            found = [each for name, each in _TELLTALES if name in self.data]
            if not found:
                raise ValueError("settings of no algorithm that is known")
            self.algorithm = found[0]
            self.weights = read_torch_arrays(file.read("policy.pth"))
            self._variables = {}
            if self.algorithm == "SAC":
                variables = file.read("pytorch_variables.pth")
                self._variables = read_torch_arrays(variables)
        for name, array in self.weights.items():
            if not np.isfinite(array).all():
                raise ValueError(f"weights that are not finite, in {name}")

    def number(self, name: str) -> float | None:
        """Returns a setting that is a number or constant, or None."""
        value = self.data.get(name)
        if isinstance(value, dict):
            found = _CONSTANT.fullmatch(str(value.get("value_schedule")))
            value = float(found[1]) if found else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if not math.isfinite(value):
            raise ValueError(f"settings with {name}={value}")
        return value

    def unread(self) -> list[str]:
        """Returns the names of settings that are only in a pickle."""
        names = ("learning_rate", "clip_range", "clip_range_vf", "action_noise")
        objects = [n for n in names if isinstance(self.data.get(n), dict)]
        return [name for name in objects if self.number(name) is None]

    def settings(self) -> dict[str, Any]:
        """Returns settings by the names of keras_rl2's arguments."""
        settings: dict[str, Any] = {}
        for name, argument in _NUMBERS.items():
            if self.number(name) is not None:
                settings[argument] = self.number(name)
        if self.algorithm in ("PPO", "A2C"):
            normalized = self.data.get("normalize_advantage") is True
            settings["normalize_advantages"] = normalized
        elif self.algorithm == "DQN":
            settings |= {"double": False, "target_every": self._target_every()}
        elif self.algorithm == "SAC":
            # Pink noise is the default of keras_rl2.
            settings |= {"noise_color": "white", **self._temperature()}
            settings["target_every"] = self.number("target_update_interval")
        elif "action_noise" not in self.unread():
            settings["exploration"] = None
        return settings

    def _target_every(self) -> int:
        """Returns the updates, of DQN, per update of its target."""
        envs = self.number("n_envs") or 1.0
        updates = self.number("gradient_steps") or 1.0
        if updates < 0:
            # There were as many updates as steps.
            updates = _DQN_TRAIN_FREQ * envs
        # Stable-Baselines3 counts steps of all environments.
        interval = (self.number("target_update_interval") or 1.0) // envs
        return max(int(interval * updates / _DQN_TRAIN_FREQ), 1)

    def _temperature(self) -> dict[str, Any]:
        """Returns SAC's temperature, and whether it is learned."""
        if "log_ent_coef" in self._variables:
            learned = self._variables["log_ent_coef"].item()
            return {"temperature": math.exp(learned)}
        fixed = max(self.number("ent_coef") or 0.0, _LEAST_TEMPERATURE)
        return {"temperature": fixed, "learn_temperature": False}


def read_torch_arrays(content: bytes) -> dict[str, Array]:
    """Reads a dict of tensors that `torch.save` wrote, without PyTorch.

    The file is a zip: the numbers of each tensor in a member, and a pickle that
    says which are whose. The pickle may name only what such a dict needs.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        programs = [n for n in file.namelist() if n.endswith(_PROGRAM)]
        if len(programs) != 1:
            raise ValueError("weights of another format than PyTorch's")
        tensors = _TensorUnpickler(file, programs[0]).load()
    if not isinstance(tensors, dict) or not all(
        isinstance(array, np.ndarray) for array in dict.values(tensors)
    ):
        raise ValueError("weights that are no dict of tensors")
    # A pickle can give an `OrderedDict` attributes that hide its methods.
    return dict(dict.items(tensors))


class _TensorUnpickler(pickle.Unpickler):
    """Loads arrays in place of tensors, and refuses all other objects."""

    def __init__(self, file: zipfile.ZipFile, program: str) -> None:
        super().__init__(io.BytesIO(file.read(program)))
        self._file = file
        self._folder = program.removesuffix(_PROGRAM)

    def find_class(self, module: str, name: str) -> Any:
        match module, name:
            case "collections", "OrderedDict":
                return OrderedDict
            case "torch._utils", "_rebuild_tensor_v2":
                return self._array
            case "torch", _ if name in _STORAGES:
                return name
        raise ValueError(f"weights that would call {module}.{name}")

    def persistent_load(self, pid: Any) -> Array:
        _, dtype, key, *_ = pid
        numbers = self._file.read(f"{self._folder}/data/{key}")
        return np.frombuffer(numbers, _STORAGES[dtype])

    def _array(self, storage: Array, offset: int, *layout: Any) -> Array:
        shape, strides, *_ = layout
        # Strides could repeat a few numbers to fill a large shape.
        if math.prod(shape) > storage.size:
            raise ValueError(f"a tensor {shape} in {storage.size} numbers")
        size = storage.itemsize
        steps = [each * size for each in strides]
        return np.ndarray(shape, storage.dtype, storage, offset * size, steps)
