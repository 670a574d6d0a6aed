"""The zip file that Stable-Baselines3 saves, read as plain data."""

import io
import json
import math
import os
import pickletools
import re
import zipfile
from collections.abc import Callable
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
# In place of a temperature of 0, since its logarithm must be finite.
_LEAST_TEMPERATURE = 1e-12
# What `torch.save` writes.
_PROGRAM = "/data.pkl"
_DICT = "collections OrderedDict"
_TENSOR = "torch._utils _rebuild_tensor_v2"
_STORAGES = {
    "torch FloatStorage": "<f4",
    "torch DoubleStorage": "<f8",
    "torch LongStorage": "<i8",
}


class SB3File:
    """The content of a file of Stable-Baselines3, without its pickles.

    The file stores objects as pickles, each with a summary in text. Only the
    summaries are read.

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
        for name, ours in _NUMBERS.items():
            if self.number(name) is not None:
                settings[ours] = self.number(name)
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
            # As many as there were steps.
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
    says which are whose. The pickle is not loaded: its few kinds of
    instructions are followed here, and any other one is refused.
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
    """Returns the content of a pickle, with arrays in place of tensors."""
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
    """Returns the result that a call of a function would have."""
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
