"""Keeping the observation statistics of an agent's networks."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_rl2.data import Trajectory
from keras_rl2.layers import ObservationNormalization
from keras_rl2.layers import all_finite
from keras_rl2.shapes import Tensor
from keras_rl2.spaces import ACTION_MASK
from keras_rl2.trees import map_leaves
from keras_rl2.trees import named_leaves

if TYPE_CHECKING:
    from keras_rl2.agents.agent import Agent


class Normalizing:
    """The `ObservationNormalization` layers of an agent, fed once a round.

    Args:
        agent: `keras_rl2.Agent`, bound to its spaces.
        layers: list of `keras.layers.Layer`. All layers of its networks.
    """

    def __init__(
        self, agent: "Agent", layers: Sequence[keras.layers.Layer]
    ) -> None:
        self._agent = agent
        self.layers = tuple(
            layer
            for layer in layers
            if isinstance(layer, ObservationNormalization)
        )
        self._accumulating: _Accumulating | None = None
        self._check_paths()

    @property
    def changing(self) -> tuple[ObservationNormalization, ...]:
        """The layers whose statistics follow what is seen: none is frozen."""
        return tuple(layer for layer in self.layers if layer.trainable)

    def _check_paths(self) -> None:
        """Refuses a layer that says of no array that it is meant for it."""
        paths = [path for path, _ in named_leaves(self._agent.encode.spec)]
        paths = [path for path in paths if path != ACTION_MASK]
        for layer in self.layers:
            if layer.key not in paths and len(paths) > 1:
                raise ValueError(
                    f"Expected the `key` of {layer.name!r} to be that of an "
                    f"array of the observation, among {paths}. "
                    f"Received: key={layer.key!r}"
                )

    def observe(self, trajectory: Trajectory) -> None:
        """Takes a rollout into statistics that the next round will use.

        Raises:
            ValueError: If a mean or variance would not be finite; nothing is
                taken in then.
        """
        layers = self.changing
        if not layers:
            return
        finite = self._accumulate(layers)(
            map_leaves(
                # [T + 1, B, ...] -> [T * B, ...]
                lambda array: array[:-1].reshape(-1, *array.shape[2:]),
                trajectory.observation,
            ),
            trajectory.valid.reshape(-1),
        )
        for layer, is_finite in zip(layers, np.array(finite), strict=True):
            if not is_finite:
                _refuse(layer, trajectory)

    def _accumulate(
        self, layers: Sequence[ObservationNormalization]
    ) -> Callable[[Any, Tensor], Tensor]:
        """Returns what takes rows into all layers, or none, and says which."""
        if self._accumulating is None or self._accumulating.layers != layers:
            made = self._make_accumulate(layers)
            self._accumulating = _Accumulating(layers, made)
        return self._accumulating.function

    def _make_accumulate(
        self, layers: Sequence[ObservationNormalization]
    ) -> Callable[[Any, Tensor], Tensor]:
        """Makes what takes rows into layers."""

        def accumulate(rows: Any, valid: Tensor) -> Tensor:
            encoded = dict(named_leaves(self._agent.encode(rows)))
            encoded.pop(ACTION_MASK, None)
            found = [
                layer.moments_with(encoded[_path(layer, encoded)], valid)
                for layer in layers
            ]
            finite = tf.stack([all_finite(each) for each in found])
            for layer, moments in zip(layers, found, strict=True):
                layer.keep_moments(moments, tf.reduce_all(finite))
            return finite

        return tf.function(accumulate, reduce_retracing=True, autograph=False)

    def commit(self) -> None:
        """Puts new observation statistics into use."""
        for layer in self.changing:
            layer.commit()


class _Accumulating(NamedTuple):
    """What takes rows into layers, and into which."""

    layers: Sequence[ObservationNormalization]
    function: Callable[[Any, Tensor], Tensor]


def _path(layer: ObservationNormalization, arrays: dict[str, Any]) -> str:
    """Returns the path of the array that a layer is meant for."""
    if layer.key not in arrays and len(arrays) == 1:
        return next(iter(arrays))
    return layer.key


def _refuse(layer: ObservationNormalization, trajectory: Trajectory) -> None:
    """Names the number that is too large to be squared."""
    arrays = dict(named_leaves(trajectory.observation))
    arrays.pop(ACTION_MASK, None)
    path = _path(layer, arrays)
    # [T + 1, B, ...] -> [T, B, ...], which is what is taken in
    array = np.asarray(arrays[path][:-1], "float64")
    valid = trajectory.valid.reshape(
        *trajectory.valid.shape, *[1] * (array.ndim - 2)
    )
    size = np.where(valid, np.abs(array), 0.0)
    where = np.unravel_index(np.argmax(size), size.shape)
    raise ValueError(
        f"Expected observations of which {layer.name!r} can keep a mean and a "
        "variance: their squares must be finite in float32. Received: "
        f"observation{f' {path}' if path else ''}={array[where]:.6g} from "
        f"environment {where[1]} at step {where[0]} of the rollout. No "
        "statistic and no weight has been changed by it."
    )
