"""Measurements of a training: recent steps, hidden units, time and weights."""

import math
from collections import deque
from collections.abc import Sequence
from typing import Any
from typing import TypeGuard

import keras
import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.callbacks.protocols import LearningAgent
from keras_rl2.callbacks.protocols import StepsTaken
from keras_rl2.networks.inputs import inputs_for
from keras_rl2.spaces.supported import ACTION
from keras_rl2.spaces.trees import Tree
from keras_rl2.spaces.trees import is_leaf
from keras_rl2.spaces.trees import map_leaves

# With fewer observations a live unit may be 0 for all of them.
_FEWEST_ROWS = 64
# A normalization may lie between a Dense layer and its activation.
_MAY_BE_RELU = (keras.layers.Dense, keras.layers.Activation)


class RecentSteps:
    """The last observations and actions, and the largest reward of all.

    Args:
        rows: int. Steps to keep, at least. Defaults to `256`.
    """

    def __init__(self, rows: int = 256) -> None:
        self.rows = rows
        self.largest_reward = 0.0
        self._parts: deque[tuple[Any, np.ndarray]] = deque()

    def take(self, trajectory: StepsTaken) -> None:
        """Adds steps that are spread evenly over a trajectory.

        Args:
            trajectory: `keras_rl2.data.Trajectory` of T steps of B
                environments.
        """
        rows = np.flatnonzero(trajectory.valid)
        if not rows.size:
            return
        t, b = np.divmod(rows, trajectory.valid.shape[1])
        largest = float(np.abs(trajectory.reward[t, b]).max())
        self.largest_reward = max(self.largest_reward, largest)
        picked = np.linspace(0, rows.size - 1, min(rows.size, self.rows))
        t, b = t[picked.astype(int)], b[picked.astype(int)]
        observation = map_leaves(
            lambda array: array[t, b], trajectory.observation
        )
        self._parts.append((observation, trajectory.action[t, b]))
        while len(self) - len(self._parts[0][1]) >= self.rows:
            self._parts.popleft()

    def get_state(self) -> dict[str, Any]:
        """Returns the steps as plain data, without a copy."""
        return {"largest": self.largest_reward, "parts": [*self._parts]}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores the state that `get_state` returned.

        Args:
            state: dict, as returned by `get_state`.
        """
        self.largest_reward = state["largest"]
        self._parts = deque(state["parts"])

    def __len__(self) -> int:
        """Returns the number of stored steps."""
        return sum(len(action) for _, action in self._parts)

    def arrays(self) -> tuple[Any, np.ndarray]:
        """Returns observations `[N, ...]` and actions `[N, ...]`."""
        observations, actions = zip(*self._parts, strict=True)
        joined = map_leaves(lambda *each: np.concatenate(each), *observations)
        return joined, np.concatenate(actions)


class HiddenUnits:
    """The hidden ReLU units of an agent's networks.

    They are those of `keras.layers.Dense` in functional and sequential
    networks that are trained; the layers within other networks are unknown to
    Keras.

    Args:
        agent: `keras_rl2.Agent`, bound to its spaces.
    """

    def __init__(self, agent: LearningAgent) -> None:
        self._agent = agent
        seen: set[int] = set()
        self._probes = [
            keras.Model(network.inputs, outputs)
            for network in agent.layers
            if _is_graph(network) and network.trainable
            if (outputs := _hidden_outputs(network, seen))
        ]

    def dead_share(self, steps: RecentSteps) -> float | None:
        """Returns the share of units that give 0 for all observations.

        Args:
            steps: `RecentSteps`. The observations.

        Returns:
            float; None if there are no such units, or too few steps.
        """
        if not self._probes or len(steps) < _FEWEST_ROWS:
            return None
        observation, action = steps.arrays()
        encoded = self._agent.task.encode(
            map_leaves(ops.convert_to_tensor, observation)
        )
        dead, units = 0, 0
        for probe in self._probes:
            try:
                inputs = inputs_for(
                    probe, encoded, _if_wanted(probe, encoded, action)
                )
            except ValueError:
                continue
            if not _takes(probe.inputs, keras.tree.flatten(inputs)):
                continue
            for output in _list(probe(inputs, training=False)):
                axes = tuple(range(len(output.shape) - 1))
                alive = ops.convert_to_numpy(ops.any(output > 0, axis=axes))
                dead += int((~alive).sum())
                units += alive.size
        return dead / units if units else None


class TimeShares:
    """Shares of the time of a training by section; they add up to 1.

    Args:
        stopwatch: `Stopwatch`. It is only read, so others may read it too.
    """

    SECTIONS = ("environment", "acting", "preparing", "update", "rest")

    def __init__(self, stopwatch: Stopwatch) -> None:
        self._stopwatch = stopwatch
        self._before = stopwatch.seconds()

    def take(self) -> dict[str, float]:
        """Returns the shares since the last call, or the constructor."""
        now = self._stopwatch.seconds()
        seconds = {
            section: now.get(section, 0.0) - self._before.get(section, 0.0)
            for section in self.SECTIONS
        }
        self._before = now
        total = max(sum(seconds.values()), 1e-9)
        return {section: each / total for section, each in seconds.items()}


def relative_change(
    before: Sequence[np.ndarray], after: Sequence[np.ndarray]
) -> float:
    """Returns the norm of a change of weights over the norm of the weights.

    Args:
        before: Sequence of arrays.
        after: Sequence of arrays of the same shapes.

    Returns:
        float: |after - before| / |before|, over all arrays together.
    """
    changes = [y - x for x, y in zip(before, after, strict=True)]
    return _norm(changes) / max(_norm(before), 1e-12)


def _is_graph(network: keras.layers.Layer) -> TypeGuard[keras.Model]:
    """Returns whether a layer is a model whose layers Keras knows."""
    return isinstance(network, keras.Model) and bool(
        getattr(network, "inputs", None)
    )


def _hidden_outputs(network: keras.Model, seen: set[int]) -> list[Any]:
    """Returns the outputs of hidden ReLU layers that are not in `seen`."""
    last = {id(output) for output in network.outputs}
    outputs = []
    for layer in network.layers:
        if (
            id(layer) in seen
            or not isinstance(layer, _MAY_BE_RELU)
            or layer.activation is not keras.activations.relu
        ):
            continue
        try:
            output = layer.output
            keras.Model(network.inputs, output)
        except (AttributeError, ValueError):
            # The output belongs to another network that shares the layer.
            continue
        if id(output) not in last:
            seen.add(id(layer))
            outputs.append(output)
    return outputs


def _if_wanted(
    probe: keras.Model, encoded: Tree[Tensor] | None, action: Any
) -> Any:
    """Returns the actions for a network with actions among its inputs."""
    if is_leaf(encoded):
        wanted = len(probe.inputs) == 2
    else:
        wanted = any(tensor.name == ACTION for tensor in probe.inputs)
    return ops.convert_to_tensor(action) if wanted else None


def _takes(inputs: list[Any], given: list[Any]) -> bool:
    """Returns whether arrays fit a network's inputs."""
    return len(inputs) == len(given) and all(
        tuple(wanted.shape[1:]) == tuple(array.shape[1:])
        for wanted, array in zip(inputs, given, strict=True)
    )


def _list(outputs: object) -> list[Any]:
    """Returns one output or several as a list."""
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def _norm(arrays: Sequence[np.ndarray]) -> float:
    """Returns the Euclidean norm of all arrays together."""
    return math.sqrt(
        sum(float(np.square(x, dtype=np.float64).sum()) for x in arrays)
    )
