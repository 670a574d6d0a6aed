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
            `[L + 3]` int32 for L layers; see `tell`.
        """
        if not self.changing:
            return tf.zeros(3, "int32")
        return self._compiled()[0](rows, valid)

    def tell(self, told: np.ndarray, trajectory: Trajectory | None) -> None:
        """Counts the outliers that `accumulate` has found.

        Args:
            told: `[L + 3]` int. 0 where there is no problem: for each layer
                whether it would not stay finite; then the number of rows with
                outliers, the first such row, and the layer with an outlier
                there.
            trajectory: `Trajectory` or None. The rollout of these rows; None
                if it was not kept.
        """
        if not told.any():
            return
        layers = self.changing
        *not_finite, count, row, most = told.astype(int).tolist()
        for layer, is_refused in zip(layers, not_finite, strict=True):
            if is_refused:
                _refuse(layer, trajectory)
        described = (
            f"an observation in row {row} of a rollout in the graph"
            if trajectory is None
            else _describe(layers[most], trajectory, row)
        )
        self.outliers.add(count, described)

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
            return tf.zeros(len(layers) + 3, "int32")

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
        return tf.concat([not_finite, _first_of(moved)], axis=0)

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


def _first_of(moved: Sequence[Tensor]) -> Tensor:
    """Returns the number of moved rows, the first, and its layer."""
    by_layer = tf.cast(tf.stack(moved), "int32")  # [L, N]
    rows = tf.reduce_max(by_layer, axis=0)
    first = tf.argmax(rows, output_type="int32")
    # Not `by_layer[:, first]`: XLA would take all that `first` depends on, e.g.
    # the weights, for constants, and compile anew when they change.
    of_first = tf.gather(by_layer, first, axis=1)
    layer = tf.argmax(of_first, output_type="int32")
    return tf.stack([tf.reduce_sum(rows), first, layer])


def _describe(
    layer: ObservationNormalization, trajectory: Trajectory, row: int
) -> str:
    """Describes the number of a row that is furthest from the others."""
    path, array = _input_of(layer, trajectory.observation)
    step, env = divmod(row, trajectory.valid.shape[1])
    name = f"observation {path}".strip()
    values = np.ravel(array[step, env])
    deviation = np.sqrt(layer.running_variance.numpy().ravel())
    distance = np.abs(values - layer.running_mean.numpy().ravel())
    # A constant number is no outlier; its standard deviation may be 0.
    place = np.argmax(distance / np.where(deviation > 0.0, deviation, np.inf))
    return (
        f"{name}={values[place]:.6g} (number {place} of "
        f"{len(values)}) from environment {env} at step {step} of its rollout"
    )


def _refuse(
    layer: ObservationNormalization, trajectory: Trajectory | None
) -> None:
    """Raises for a number that is too large to be squared, with its place."""
    received = "larger ones from a rollout in the graph"
    if trajectory is not None:
        path, array = _input_of(layer, trajectory.observation)
        array, name = array[:-1], f"observation {path}".strip()
        valid = trajectory.valid.reshape(
            *trajectory.valid.shape, *[1] * (array.ndim - 2)
        )
        size = np.where(valid, np.abs(array.astype("float64")), 0.0)
        where = np.unravel_index(np.argmax(size), size.shape)
        received = (
            f"{name}={float(array[where]):.6g} from environment {where[1]} at "
            f"step {where[0]} of the rollout"
        )
    raise ValueError(
        f"Expected observations for which {layer.name!r} has a mean and a "
        "variance: their squares must be finite in float32. Received: "
        f"{received}. No statistic and no weight has been changed by it."
    )
