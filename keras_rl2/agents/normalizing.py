"""Keeping the observation statistics of an agent's networks."""

import functools
from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING

import keras
import tensorflow as tf

from keras_rl2.data import Trajectory
from keras_rl2.layers import ObservationNormalization
from keras_rl2.shapes import Tensor

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

    def observe(self, trajectory: Trajectory) -> None:
        """Takes a rollout into statistics that the next round will use."""
        if not self.layers:
            return
        observation = trajectory.observation[:-1]
        self._accumulate(
            observation.reshape(-1, *observation.shape[2:]),
            trajectory.valid.reshape(-1),
        )

    @functools.cached_property
    def _accumulate(self) -> Callable[[Tensor, Tensor], None]:
        """Makes the compiled form of `ObservationNormalization.accumulate`."""

        def accumulate(rows: Tensor, valid: Tensor) -> None:
            for layer in self.layers:
                layer.accumulate(self._agent.encode(rows), valid)

        return tf.function(accumulate, reduce_retracing=True, autograph=False)

    def commit(self) -> None:
        """Puts new observation statistics into use."""
        for layer in self.layers:
            layer.commit()
