"""What `Diagnostics` measures, each of it without a change to the training."""

import functools
import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

# Fewer observations say too little: a unit may well be 0 for a few of them.
_FEWEST_ROWS = 64


class Patches:
    """Functions put in the place of an object's methods, for a while."""

    def __init__(self) -> None:
        self._patches: list[tuple[Any, str, Any, bool]] = []

    def wrap(
        self,
        owner: Any,
        name: str,
        wrapper: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        """Replaces a method, where there is such a one.

        Args:
            owner: The object.
            name: str. The method's name.
            wrapper: Function from the method to what replaces it.
        """
        method = getattr(owner, name, None)
        if method is None:
            return
        self._patches.append((owner, name, method, name in vars(owner)))
        setattr(owner, name, functools.wraps(method)(wrapper(method)))

    def undo(self) -> None:
        """Puts all methods back."""
        while self._patches:
            owner, name, method, was_own = self._patches.pop()
            if was_own:
                setattr(owner, name, method)
            else:
                delattr(owner, name)


class TimeSplit:
    """Tells what the time of a training goes into.

    At any moment it is in one section; entering one leaves another, so that
    shares add up to 1.

    Args:
        clock: Callable. Returns the time in seconds. Defaults to
            `time.perf_counter`.
    """

    SECTIONS = ("environment", "acting", "preparing", "update", "rest")

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._section = "rest"
        self._since = clock()
        self._seconds = dict.fromkeys(self.SECTIONS, 0.0)

    def switch(self, section: str) -> str:
        """Enters a section, and returns the one that was left."""
        now = self._clock()
        left = self._section
        self._seconds[left] += now - self._since
        self._section, self._since = section, now
        return left

    def watch(self, rollouts: Any, patches: Patches) -> None:
        """Follows a dataset into the sections of a round.

        Args:
            rollouts: `keras_rl2.data.RoundDataset`.
            patches: `Patches`. Undone by whoever made them.
        """
        patches.wrap(rollouts, "refresh", self._timed("preparing"))
        patches.wrap(rollouts, "collect", self._timed("acting"))
        env = getattr(rollouts, "env", None)
        for name in ("step", "reset"):
            patches.wrap(env, name, self._timed("environment"))

    def shares(self) -> dict[str, float]:
        """Returns the shares since the last call, and starts anew."""
        self.switch(self._section)
        total = max(sum(self._seconds.values()), 1e-9)
        shares = {key: each / total for key, each in self._seconds.items()}
        self._seconds = dict.fromkeys(self.SECTIONS, 0.0)
        return shares

    def _timed(self, section: str) -> Any:
        """Makes the wrapper of a method that has a section of its own."""

        def wrapper(method: Callable[..., Any]) -> Callable[..., Any]:
            def timed(*args: Any, **kwargs: Any) -> Any:
                if section == "environment" and self._section == "rest":
                    # Somebody else's: an evaluation's, say.
                    return method(*args, **kwargs)
                left = self.switch(section)
                try:
                    return method(*args, **kwargs)
                finally:
                    self.switch(left)

            return timed

        return wrapper


class RecentSteps:
    """The last observations and actions, and the largest reward of all.

    Args:
        rows: int. Steps to keep, at least. Defaults to `256`.
    """

    def __init__(self, rows: int = 256) -> None:
        self.rows = rows
        self.largest_reward = 0.0
        self._parts: deque[tuple[np.ndarray, np.ndarray]] = deque()

    def watch(self, agent: Any, patches: Patches) -> None:
        """Looks at each trajectory that an agent is given.

        Args:
            agent: `keras_rl2.Agent`.
            patches: `Patches`. Undone by whoever made them.
        """

        def wrapper(observe: Callable[..., Any]) -> Callable[..., Any]:
            def seen(trajectory: Any) -> Any:
                self.take(trajectory)
                return observe(trajectory)

            return seen

        patches.wrap(agent, "observe", wrapper)

    def take(self, trajectory: Any) -> None:
        """Takes steps that are spread evenly over a trajectory.

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
        part = trajectory.observation[t, b], trajectory.action[t, b]
        self._parts.append(part)
        while len(self) - len(self._parts[0][0]) >= self.rows:
            self._parts.popleft()

    def __len__(self) -> int:
        """Returns the number of steps that are kept."""
        return sum(len(observation) for observation, _ in self._parts)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns observations `[N, ...]` and actions `[N, ...]`."""
        observations, actions = zip(*self._parts, strict=True)
        return np.concatenate(observations), np.concatenate(actions)


class HiddenUnits:
    """The hidden ReLU units of an agent's networks.

    Those of `keras.layers.Dense` in functional and sequential networks that
    are trained; what a network of another kind does inside, Keras cannot say.

    Args:
        agent: `keras_rl2.Agent`, bound to its spaces.
    """

    def __init__(self, agent: Any) -> None:
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
            steps: `RecentSteps`. Have the observations.

        Returns:
            float; or None where there are no such units, or too few steps.
        """
        if not self._probes or len(steps) < _FEWEST_ROWS:
            return None
        observation, action = steps.arrays()
        encoded = self._agent.encode(ops.convert_to_tensor(observation))
        given = [encoded, ops.convert_to_tensor(action)]
        dead, units = 0, 0
        for probe in self._probes:
            inputs = given[: len(probe.inputs)]
            if not _fit(probe.inputs, inputs):
                continue
            for output in _list(probe(inputs, training=False)):
                axes = tuple(range(len(output.shape) - 1))
                alive = ops.convert_to_numpy(ops.any(output > 0, axis=axes))
                dead += int((~alive).sum())
                units += alive.size
        return dead / units if units else None


def relative_change(before: list[np.ndarray], after: list[np.ndarray]) -> float:
    """Returns the norm of a change of weights over the norm of the weights.

    Args:
        before: list of arrays.
        after: list of arrays of the same shapes.

    Returns:
        float: |after - before| / |before|, over all arrays together.
    """
    changes = [y - x for x, y in zip(before, after, strict=True)]
    return _norm(changes) / max(_norm(before), 1e-12)


def _norm(arrays: list[np.ndarray]) -> float:
    """Returns the Euclidean norm of all arrays together."""
    return math.sqrt(
        sum(float(np.square(x, dtype=np.float64).sum()) for x in arrays)
    )


def _is_graph(network: Any) -> bool:
    """Says whether a layer is a model that Keras knows the inside of."""
    return isinstance(network, keras.Model) and bool(
        getattr(network, "inputs", None)
    )


def _hidden_outputs(network: Any, seen: set[int]) -> list[Any]:
    """Returns the outputs of hidden ReLU layers that were not seen yet."""
    last = {id(output) for output in network.outputs}
    outputs = []
    for layer in network.layers:
        if (
            id(layer) in seen
            or not isinstance(layer, keras.layers.Dense)
            or layer.activation is not keras.activations.relu
        ):
            continue
        try:
            output = layer.output
            keras.Model(network.inputs, output)
        except (AttributeError, ValueError):
            # What Keras gives belongs to another network that it is part of.
            continue
        if id(output) not in last:
            seen.add(id(layer))
            outputs.append(output)
    return outputs


def _fit(inputs: list[Any], given: list[Any]) -> bool:
    """Says whether a network's inputs are what there is to give."""
    return len(inputs) == len(given) and all(
        tuple(wanted.shape[1:]) == tuple(array.shape[1:])
        for wanted, array in zip(inputs, given, strict=True)
    )


def _list(outputs: Any) -> list[Any]:
    """Returns one output or several as a list."""
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
