"""Keeping the observation statistics of an agent's networks."""

import functools
from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import keras
import tensorflow as tf

from keras_rl2.data import Trajectory
from keras_rl2.layers import ObservationNormalization
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
        self._check_paths()

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
        """Takes a rollout into statistics that the next round will use."""
        if not self.layers:
            return
        self._accumulate(
            map_leaves(
                # [T + 1, B, ...] -> [T * B, ...]
                lambda array: array[:-1].reshape(-1, *array.shape[2:]),
                trajectory.observation,
            ),
            trajectory.valid.reshape(-1),
        )

    @functools.cached_property
    def _accumulate(self) -> Callable[[Any, Tensor], None]:
        """Makes the compiled form of `ObservationNormalization.accumulate`."""

        def accumulate(rows: Any, valid: Tensor) -> None:
            encoded = dict(named_leaves(self._agent.encode(rows)))
            encoded.pop(ACTION_MASK, None)
            for layer in self.layers:
                path = layer.key
                if path not in encoded and len(encoded) == 1:
                    [path] = encoded
                layer.accumulate(encoded[path], valid)

        return tf.function(accumulate, reduce_retracing=True, autograph=False)

    def commit(self) -> None:
        """Puts new observation statistics into use."""
        for layer in self.layers:
            layer.commit()
