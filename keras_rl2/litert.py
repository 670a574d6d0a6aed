"""Policies that run in the LiteRT interpreter, without TensorFlow."""

import dataclasses
import functools
from typing import Any

import numpy as np


class LiteRTRunner:
    """Runs a converted policy whose weights are inputs.

    Args:
        converted: bytes. The model, with inputs `observation`, perhaps
            `noise`, and `weight_0`, `weight_1`, ...
        num_weights: int. How many weights it was made with.
        threads: int or None. Threads of the interpreter; None for its own
            choice.

    Attributes:
        converted: bytes. The model.
        threads: int or None.
    """

    backend = "litert"

    def __init__(
        self, converted: bytes, num_weights: int, threads: int | None
    ) -> None:
        from ai_edge_litert.interpreter import Interpreter

        interpreter = Interpreter(model_content=converted, num_threads=threads)
        interpreter.allocate_tensors()
        self.converted = converted
        self.threads = threads
        self._interpreter = interpreter
        details = {
            _plain_name(d["name"]): d["index"]
            for d in interpreter.get_input_details()
        }
        # The converter drops inputs that the policy does not use.
        self._weights = [details.get(f"weight_{i}") for i in range(num_weights)]
        self._observation = details["observation"]
        self._noise = details.get("noise")
        ordered = [d["index"] for d in interpreter.get_output_details()]
        self._action, self._for_environment = ordered[0], ordered[-1]

    def set_weights(self, weights: list[np.ndarray]) -> None:
        """Copies the weights into the interpreter's inputs."""
        for index, weight in zip(self._weights, weights, strict=True):
            if index is not None:
                self._interpreter.set_tensor(index, weight)

    def __call__(self, observation: Any, noise: Any) -> Any:
        """Runs the interpreter and returns copies of its outputs."""
        interpreter = self._interpreter
        interpreter.set_tensor(self._observation, observation)
        if self._noise is not None:
            interpreter.set_tensor(self._noise, noise)
        interpreter.invoke()
        action = interpreter.get_tensor(self._action)
        if self._for_environment == self._action:
            return action, action
        return action, interpreter.get_tensor(self._for_environment)


@dataclasses.dataclass(frozen=True)
class LiteRTPolicy:
    """A greedy policy for one observation at a time, as plain data.

    It can be sent to a process that has no TensorFlow.

    Attributes:
        converted: bytes. The model for a batch of one; see `LiteRTRunner`.
        weights: list of arrays. Its weights.
        threads: int or None. Threads of the interpreter.
        observation_dtype: str. What the model takes.
        action_dtype: str. What the action space holds.
    """

    converted: bytes
    weights: list[np.ndarray]
    threads: int | None
    observation_dtype: str
    action_dtype: str

    def __call__(self, observation: Any) -> Any:
        """Returns the action for one observation, as the space has it."""
        batch = np.asarray(observation, self.observation_dtype)[None]
        _, action = self._runner(np.ascontiguousarray(batch), None)
        return action.astype(self.action_dtype, copy=False)[0]

    @functools.cached_property
    def _runner(self) -> LiteRTRunner:
        """The interpreter, made where it is used."""
        runner = LiteRTRunner(self.converted, len(self.weights), self.threads)
        runner.set_weights(self.weights)
        return runner


def _plain_name(name: str) -> str:
    """Strips what the converter adds: `serving_default_noise:0` -> `noise`."""
    return name.split(":")[0].removeprefix("serving_default_")
