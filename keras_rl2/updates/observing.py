"""Statistics of the observations that an agent sees."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from gymnasium.spaces import Box

from keras_rl2.basics.outliers import Outliers
from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.layers import ObservationNormalization
from keras_rl2.layers.observation_normalization import all_finite
from keras_rl2.networks.task import Task
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves


class Normalizing:
    """The `ObservationNormalization` layers of an agent, fed once a round.

    Attributes:
        outliers: `keras_rl2.basics.outliers.Outliers`. Observations with a
            number that some layer's statistics did not follow.
    """

    def __init__(
        self, task: Task, layers: Sequence[keras.layers.Layer]
    ) -> None:
        self._task = task
        self.layers = tuple(
            layer
            for layer in layers
            if isinstance(layer, ObservationNormalization)
        )
        self.outliers = Outliers()
        self._traced_for: tuple[ObservationNormalization, ...] = ()
        self._check_paths()

    @property
    def changing(self) -> tuple[ObservationNormalization, ...]:
        """The layers that update their statistics: all that are not frozen."""
        return tuple(layer for layer in self.layers if layer.trainable)

    def _check_paths(self) -> None:
        """Raises if a layer does not name the array it normalizes."""
        paths = [path for path, _ in named_leaves(self._task.encode.spec)]
        paths = [path for path in paths if path != ACTION_MASK]
        for layer in self.layers:
            if layer.key not in paths and len(paths) > 1:
                raise ValueError(
                    f"Expected the `key` of {layer.name!r} to be that of an "
                    f"array of the observation, among {paths}. "
                    f"Received: key={layer.key!r}"
                )

    def observe(self, trajectory: Trajectory) -> None:
        """Adds a rollout to the statistics for the next round."""
        if not self.changing:
            return
        told = self.accumulate(
            map_leaves(
                # [T + 1, B, ...] -> [T * B, ...]
                lambda array: array[:-1].reshape(-1, *array.shape[2:]),
                trajectory.observation,
            ),
            trajectory.valid.reshape(-1),
        )
        self.tell(np.array(told), trajectory)

    def accumulate(self, rows: Any, valid: Tensor) -> Tensor:
        """Adds observations to the statistics for the next round, or none.

        Args:
            rows: `[N, ...]`. Raw observations, a tree of tensors.
            valid: `[N]` bool. Rows that count.

        Returns:
            `[L + 1]` int32 for L layers; see `tell`.
        """
        if not self.changing:
            return tf.zeros(1, "int32")
        return self._compiled()[0](rows, valid)

    def tell(self, told: np.ndarray, trajectory: Trajectory | None) -> None:
        """Counts the outliers that `accumulate` has found.

        Args:
            told: `[L + 1]` int. 0 where there is no problem: for each layer
                whether it would not stay finite; then the number of rows with
                outliers.
            trajectory: `Trajectory` or None. The rollout of these rows; None
                if it was not kept.
        """
        if not told.any():
            return
        *not_finite, count = told.astype(int).tolist()
        largest = "an observation of a rollout in the graph"
        if trajectory is not None:
            largest = self._largest(trajectory)
        if any(not_finite):
            layer = self.changing[not_finite.index(1)]
            raise ValueError(
                f"Expected observations for which {layer.name!r} has a mean "
                "and a variance: their squares must be finite in float32. "
                f"Received: {largest}. No statistic and no weight has been "
                "changed by it."
            )
        self.outliers.add(count, largest)

    def _largest(self, trajectory: Trajectory) -> str:
        """Describes the largest number of a rollout, whatever its sign."""
        size, description = -1.0, ""
        for layer in self.changing:
            path, array = _input_of(layer, trajectory.observation)
            # [T + 1, B, ...] -> [T, B, N]
            array = array[:-1].reshape(*trajectory.valid.shape, -1)
            sizes = np.abs(array.astype("float64"))
            sizes = np.where(trajectory.valid[..., None], sizes, 0.0)
            place = np.unravel_index(np.argmax(sizes), sizes.shape)
            if sizes[place] > size:
                size, (step, env, number) = sizes[place], place
                description = (
                    f"{f'observation {path}'.strip()}={array[place]:.6g} "
                    f"(number {number} of {array.shape[-1]}) from environment "
                    f"{env} at step {step} of its rollout"
                )
        return description

    def _compiled(self) -> tuple[Callable[..., Tensor], Callable[[], None]]:
        """Returns functions that add rows and commit, traced for the layers."""
        layers = self.changing
        if self._traced_for != layers:
            self._traced_for = layers
            self._functions = (
                tf.function(
                    self._accumulate, reduce_retracing=True, autograph=False
                ),
                # Eagerly, two assignments of each layer take twice the time.
                tf.function(self._commit, autograph=False),
            )
        return self._functions

    def _accumulate(self, rows: Any, valid: Tensor) -> Tensor:
        """Adds rows to all layers, or to none; see `tell`."""
        layers = self._traced_for
        encoded = self._task.encode(rows)
        seen = [_input_of(layer, encoded)[1] for layer in layers]
        found = [
            layer.moments_with(x, valid)
            for layer, x in zip(layers, seen, strict=True)
        ]

        def keep() -> Tensor:
            for layer, moments in zip(layers, found, strict=True):
                layer.keep_moments(moments)
            return tf.zeros(len(layers) + 1, "int32")

        # Values are checked one by one only where it is necessary.
        ordinary = [
            layer.are_ordinary(moments)
            for layer, moments in zip(layers, found, strict=True)
        ]
        return tf.cond(
            tf.reduce_all(ordinary),
            keep,
            lambda: self._accumulate_bounded(seen, valid),
        )

    def _accumulate_bounded(
        self, seen: Sequence[Tensor], valid: Tensor
    ) -> Tensor:
        """Adds rows to all layers without following outliers, or to none."""
        layers = self._traced_for
        spaces = space_tree(self._task.observation_space)
        found, moved = [], []
        for layer, x in zip(layers, seen, strict=True):
            _, space = _input_of(layer, spaces)
            # Only measured numbers are far off, neither choices nor bytes.
            measured = isinstance(space, Box) and space.dtype != np.uint8
            bounded = layer.bounded(x) if measured else x
            differs = tf.cast(x, bounded.dtype) != bounded
            axes = list(range(1, len(x.shape)))
            moved.append(tf.reduce_any(differs, axes) & valid)
            found.append(layer.moments_with(bounded, valid))
        finite = tf.stack([all_finite(each) for each in found])
        for layer, moments in zip(layers, found, strict=True):
            layer.keep_moments(moments, tf.reduce_all(finite))
        not_finite = tf.cast(tf.logical_not(finite), "int32")
        outliers = tf.reduce_any(moved, axis=0)
        count = tf.reduce_sum(tf.cast(outliers, "int32"))
        return tf.concat([not_finite, count[None]], axis=0)

    def _commit(self) -> None:
        for layer in self._traced_for:
            layer.commit()

    def commit(self) -> None:
        """Puts new observation statistics into use."""
        if self.changing:
            self._compiled()[1]()


def _input_of(layer: ObservationNormalization, tree: Any) -> tuple[str, Any]:
    """Returns the path and the leaf that a layer normalizes."""
    arrays = dict(named_leaves(tree))
    arrays.pop(ACTION_MASK, None)
    alone = len(arrays) == 1
    path = next(iter(arrays)) if alone else layer.key
    return path, arrays[path]
