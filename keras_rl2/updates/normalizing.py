"""Keeping the observation statistics of an agent's networks."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple

import gymnasium
import keras
import numpy as np
import tensorflow as tf
from gymnasium.spaces import Box

from keras_rl2.basics.outliers import Outliers
from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.trajectory import Trajectory
from keras_rl2.layers import ObservationNormalization
from keras_rl2.layers.observation_normalization import all_finite
from keras_rl2.spaces.supported import ACTION_MASK
from keras_rl2.spaces.supported import space_tree
from keras_rl2.spaces.trees import map_leaves
from keras_rl2.spaces.trees import named_leaves
from keras_rl2.tasks.task import Task


class Normalizing:
    """The `ObservationNormalization` layers of an agent, fed once a round.

    Args:
        task: `Task`. Of the agent.
        layers: list of `keras.layers.Layer`. All layers of its networks.

    Attributes:
        outliers: `keras_rl2.basics.outliers.Outliers`. Observations of which
            some layer did not follow a number.
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
        self._made: _Compiled | None = None
        self._check_paths()

    @property
    def changing(self) -> tuple[ObservationNormalization, ...]:
        """The layers whose statistics follow what is seen: none is frozen."""
        return tuple(layer for layer in self.layers if layer.trainable)

    def _check_paths(self) -> None:
        """Refuses a layer that says of no array that it is meant for it."""
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
        """Takes a rollout into statistics that the next round will use.

        Raises:
            ValueError: If a mean or variance would not be finite; nothing is
                taken in then.
        """
        layers = self.changing
        if not layers:
            return
        told = self._compiled(layers).accumulate(
            map_leaves(
                # [T + 1, B, ...] -> [T * B, ...]
                lambda array: array[:-1].reshape(-1, *array.shape[2:]),
                trajectory.observation,
            ),
            trajectory.valid.reshape(-1),
        )
        found = np.array(told)
        if not found.any():
            return
        *not_finite, count, row, most = found.tolist()
        for layer, is_refused in zip(layers, not_finite, strict=True):
            if is_refused:
                _refuse(layer, trajectory)
        self.outliers.add(count, _describe(layers[most], trajectory, row))

    def _compiled(
        self, layers: Sequence[ObservationNormalization]
    ) -> "_Compiled":
        """Returns what is done to layers, made once for the same ones."""
        if self._made is None or self._made.layers != layers:

            def commit() -> None:
                for layer in layers:
                    layer.commit()

            self._made = _Compiled(
                layers,
                self._make_accumulate(layers),
                # Eagerly, two assignments of each layer take twice the time.
                tf.function(commit, autograph=False),
            )
        return self._made

    def _make_accumulate(
        self, layers: Sequence[ObservationNormalization]
    ) -> Callable[[Any, Tensor], Tensor]:
        """Makes what takes rows into all layers, or into none.

        It returns `[L + 3]` int32, which is 0 where all is well: of each layer
        whether it would not stay finite; the number of rows with outliers, the
        first such row, and the layer that met one there.
        """
        spaces = dict(named_leaves(space_tree(self._task.observation_space)))
        spaces.pop(ACTION_MASK, None)
        limited = [_may_be_far_off(spaces[_path(x, spaces)]) for x in layers]

        def accumulate(rows: Any, valid: Tensor) -> Tensor:
            encoded = dict(named_leaves(self._task.encode(rows)))
            encoded.pop(ACTION_MASK, None)
            seen = [encoded[_path(layer, encoded)] for layer in layers]
            found = [
                layer.moments_with(x, valid)
                for layer, x in zip(layers, seen, strict=True)
            ]

            def keep() -> Tensor:
                for layer, moments in zip(layers, found, strict=True):
                    layer.keep_moments(moments)
                return tf.zeros(len(layers) + 3, "int32")

            # Values are looked at one by one only where there is reason to.
            return tf.cond(
                tf.reduce_all(
                    [
                        layer.are_ordinary(moments)
                        for layer, moments in zip(layers, found, strict=True)
                    ]
                ),
                keep,
                lambda: _accumulate_bounded(layers, seen, limited, valid),
            )

        return tf.function(accumulate, reduce_retracing=True, autograph=False)

    def commit(self) -> None:
        """Puts new observation statistics into use."""
        layers = self.changing
        if layers:
            self._compiled(layers).commit()


class _Compiled(NamedTuple):
    """What takes rows into layers and into use, and which layers."""

    layers: Sequence[ObservationNormalization]
    accumulate: Callable[[Any, Tensor], Tensor]
    commit: Callable[[], None]


def _path(layer: ObservationNormalization, arrays: dict[str, Any]) -> str:
    """Returns the path of the array that a layer is meant for."""
    if layer.key not in arrays and len(arrays) == 1:
        return next(iter(arrays))
    return layer.key


def _may_be_far_off(space: gymnasium.Space[Any]) -> bool:
    """Says whether numbers are measured: neither choices nor bytes."""
    return isinstance(space, Box) and space.dtype != np.uint8


def _accumulate_bounded(
    layers: Sequence[ObservationNormalization],
    seen: Sequence[Tensor],
    limited: Sequence[bool],
    valid: Tensor,
) -> Tensor:
    """Takes rows into all layers without following outliers, or into none.

    Args:
        layers: Sequence of layers, L.
        seen: Sequence of `[N, ...]`. What each of them is given.
        limited: Sequence of bool. Whether there may be outliers in it.
        valid: `[N]` bool. Rows that count.

    Returns:
        `[L + 3]` int32. As of what `Normalizing` compiles.
    """
    found, moved = [], []
    for layer, x, is_limited in zip(layers, seen, limited, strict=True):
        bounded = layer.bounded(x) if is_limited else x
        differs = tf.cast(x, bounded.dtype) != bounded
        axes = list(range(1, len(x.shape)))
        moved.append(tf.reduce_any(differs, axes) & valid)
        found.append(layer.moments_with(bounded, valid))
    finite = tf.stack([all_finite(each) for each in found])
    for layer, moments in zip(layers, found, strict=True):
        layer.keep_moments(moments, tf.reduce_all(finite))
    not_finite = tf.cast(tf.logical_not(finite), "int32")
    told: Tensor = tf.concat([not_finite, _first_of(moved)], axis=0)
    return told


def _first_of(moved: Sequence[Tensor]) -> Tensor:
    """Returns how many rows `[N]` were moved, the first, and by which layer."""
    by_layer = tf.cast(tf.stack(moved), "int32")  # [L, N]
    rows = tf.reduce_max(by_layer, axis=0)
    first = tf.argmax(rows, output_type="int32")
    layer = tf.argmax(by_layer[:, first], output_type="int32")
    return tf.stack([tf.reduce_sum(rows), first, layer])


def _describe(
    layer: ObservationNormalization, trajectory: Trajectory, row: int
) -> str:
    """Names the number of a row that is furthest from the others."""
    arrays = dict(named_leaves(trajectory.observation))
    arrays.pop(ACTION_MASK, None)
    path = _path(layer, arrays)
    step, env = divmod(row, trajectory.valid.shape[1])
    values = np.ravel(arrays[path][step, env])
    deviation = np.sqrt(layer.running_variance.numpy().ravel())
    distance = np.abs(values - layer.running_mean.numpy().ravel())
    # What has been constant is no outlier, and may be 0 deviations from it.
    place = np.argmax(distance / np.where(deviation > 0.0, deviation, np.inf))
    return (
        f"{_name(path)}={values[place]:.6g} (number {place} of "
        f"{len(values)}) from environment {env} at step {step} of its rollout"
    )


def _name(path: str) -> str:
    """Names an array of the observation."""
    return f"observation {path}" if path else "observation"


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
        f"{_name(path)}={array[where]:.6g} from "
        f"environment {where[1]} at step {where[0]} of the rollout. No "
        "statistic and no weight has been changed by it."
    )
