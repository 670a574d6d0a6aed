"""Policies that run in the LiteRT interpreter, without TensorFlow."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.spaces.array_spec import ArraySpec
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import leaves
from keras_rl2.spaces.trees import with_leaves


class LiteRTRunner:
    """Runs a converted policy that takes its weights as inputs.

    Args:
        converted: bytes. The model, with inputs for observations, optionally
            `noise`, and `weight_0`, `weight_1`, ...
        num_weights: int. Number of weights.
        threads: int or None. Threads of the interpreter; None for its default.
        observations: Sequence of str. Names of the inputs for the arrays of
            an observation, in the order of `trees.leaves`. Defaults to
            `("observation",)`, one array.
        states: int. Arrays of the state of a recurrent policy. Defaults to
            `0`.

    Attributes:
        converted: bytes. The model.
        threads: int or None.
    """

    backend = "litert"

    def __init__(
        self,
        converted: bytes,
        num_weights: int,
        threads: int | None,
        observations: Sequence[str] = ("observation",),
        states: int = 0,
    ) -> None:
        from ai_edge_litert.interpreter import Interpreter

        interpreter = Interpreter(model_content=converted, num_threads=threads)
        interpreter.allocate_tensors()
        self.converted = converted
        self.threads = threads
        self.observations = tuple(observations)
        self._interpreter = interpreter
        # The interpreter holds the arrays of one call.
        self._calling = threading.Lock()
        details: dict[str, int] = {}
        for each in interpreter.get_input_details():
            # The converter extends names: `serving_default_noise:0` -> `noise`.
            name = each["name"].split(":")[0].removeprefix("serving_default_")
            details[name] = each["index"]
        weights = [f"weight_{index}" for index in range(num_weights)]
        memory = [f"state_{index}" for index in range(states)]
        inputs = [*observations, "noise", "begins", *memory]
        # The converter drops inputs that the policy does not use: no index.
        self._weights = [details.get(name) for name in weights]
        self._inputs = [details.get(name) for name in inputs]
        outputs = interpreter.get_output_details()
        self._outputs = [each["index"] for each in outputs]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Copies the weights into the interpreter's inputs."""
        with self._calling:
            for index, weight in zip(self._weights, weights, strict=True):
                if index is not None:
                    self._interpreter.set_tensor(index, np.asarray(weight))

    def __call__(
        self, observation: Any, noise: Any, memory: Sequence[Any] = ()
    ) -> list[np.ndarray]:
        """Runs the interpreter and returns copies of its outputs."""
        interpreter = self._interpreter
        arrays = (
            [observation]
            if isinstance(observation, np.ndarray)
            else leaves(observation)
        )
        with self._calling:
            for index, array in zip(
                self._inputs, (*arrays, noise, *memory), strict=False
            ):
                if index is not None:
                    interpreter.set_tensor(index, array)
            interpreter.invoke()
            return [*map(interpreter.get_tensor, self._outputs)]


def for_environment(action: Tree[ArraySpec], outputs: list[Any]) -> Any:
    """Returns the environment's action from the outputs of a policy.

    These are the normalized action, then each array of the environment's
    action, if that is different.
    """
    if isinstance(action, ArraySpec):
        return outputs[-1]
    return with_leaves(action, outputs[1:])
