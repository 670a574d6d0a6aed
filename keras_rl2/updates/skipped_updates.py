"""Updates that are skipped since a value would not have been finite."""

import math
from collections.abc import Iterable
from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.collecting.checks import is_finite
from keras_rl2.layers import ObservationNormalization

DEFAULT_LIMIT = 1000
"""Updates skipped in a row that end a training.

One reward may spoil a whole round, which has up to some hundred updates in
published settings (320 of PPO on MuJoCo); what is broken for good is to be
told within seconds.
"""


class SkippedUpdates:
    """Counts the updates in a row that are skipped.

    Attributes:
        limit: int or None. Number of skipped updates in a row that ends a
            training; None for no limit.
        in_a_row: `tf.Variable`, scalar int64. Updates skipped since the last
            one that was made.
    """

    def __init__(self, agent: keras.Model) -> None:
        self._agent = agent
        self.limit: int | None = DEFAULT_LIMIT
        self._layers: Sequence[keras.layers.Layer] = ()
        self.in_a_row = tf.Variable(0, trainable=False, dtype="int64")

    def watch(self, layers: Sequence[keras.layers.Layer]) -> None:
        """Sets the layers that a forward pass of an update may change."""
        # `ObservationNormalization` changes between rounds only. Other layers
        # with weights that no gradient changes do so at each update.
        self._layers = [
            layer
            for layer in layers
            if not isinstance(layer, ObservationNormalization)
        ]

    def before_forward_pass(self) -> list[tuple[keras.Variable, Tensor]]:
        """Returns the weights that layers may change, with their values."""
        found: dict[int, tuple[keras.Variable, Tensor]] = {}
        for layer in self._layers:
            if getattr(layer, "layers", None):
                continue
            # A spectral kernel is divided by its norm in each pass.
            spectral = isinstance(layer, keras.layers.SpectralNormalization)
            kept = layer.weights if spectral else layer.non_trainable_weights
            for weight in kept:
                before = tf.convert_to_tensor(weight.value)
                found[id(weight)] = weight, before
        return [*found.values()]

    def left_finite(
        self, before: Sequence[tuple[keras.Variable, Tensor]]
    ) -> Tensor:
        """Returns whether the weights that a forward pass changed are finite.

        The mean and variance of a minibatch may overflow while the outputs of
        the layer, and so all gradients, are finite.
        """
        finite = tf.constant(True)
        for variable, value in before:
            if value.dtype.is_floating:
                now = tf.reduce_all(tf.math.is_finite(variable.value))
                finite = tf.logical_and(finite, now)
        return finite

    def count(self, optimizers: Sequence[keras.optimizers.Optimizer]) -> None:
        """Counts a skipped update.

        A loss scale above 1 that was in use falls: the range of float16 is
        small, and Keras finds its limit in this way. The update then does not
        count as one in a row, since its data may be faultless.
        """
        blamed = tf.ones((), "int64")
        for optimizer in optimizers:
            if not isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
                continue
            scale = tf.convert_to_tensor(optimizer.dynamic_scale.value)
            can_fall = scale > 1.0
            optimizer.step_counter.assign(0)
            optimizer.dynamic_scale.assign(
                tf.where(can_fall, 0.5 * scale, scale)
            )
            blamed = tf.where(can_fall, tf.zeros_like(blamed), blamed)
        self.in_a_row.assign_add(blamed)

    def check(self, in_a_row: int | None = None) -> None:
        """Ends a training that makes no progress."""
        if self.limit is None:
            return
        if in_a_row is None:
            in_a_row = int(self.in_a_row.numpy())
        if in_a_row < self.limit:
            return
        # The next `fit` begins another row.
        self.in_a_row.assign(0)
        raise FloatingPointError(
            "Expected finite gradients and learning rates. Received: "
            f"{in_a_row} updates in a row that were skipped, because of "
            f"{self._cause()}. No weight was changed by these updates. The "
            "limit is `max_skipped_updates` of `compile`"
        )

    def _cause(self) -> str:
        """Returns the cause, as far as it is visible outside of the updates."""
        for part in parts_of(self._agent.optimizer):
            rate = float(ops.convert_to_numpy(part.learning_rate))
            if not is_small(rate):
                return f"a learning rate of {rate} of {part.name!r}"
        name = first_not_finite(self._agent.variables)
        if name is not None:
            return f"the weight {name!r}, which is itself not finite"
        return (
            "losses that are infinite or not numbers: look for rewards and "
            "observations that are far too large, and for a network or a loss "
            "that returns NaN"
        )


def refuse_non_finite(
    agent: keras.Model,
    verb: str,
    variables: Iterable[keras.Variable] | None = None,
) -> None:
    """Raises if an agent has weights that are not finite."""
    if variables is None:
        variables = saved_variables(agent)
    name = first_not_finite(variables)
    if name is not None:
        raise ValueError(
            f"Expected finite weights to {verb} {agent.name!r}. Received: "
            f"{name!r} with values that are infinite or not numbers"
        )


def saved_variables(agent: keras.Model) -> list[keras.Variable]:
    """Returns the variables of a saved agent: weights and optimizers' slots."""
    # Means of losses are no weights, and are not saved.
    weights = list(agent.weights)
    if agent.compiled and agent.optimizer is not None:
        weights += agent.optimizer.variables
    return weights


def first_not_finite(variables: Iterable[keras.Variable]) -> str | None:
    """Returns the path of the first variable that is not finite, or None."""
    for variable in variables:
        # Keys and counters are integers.
        if not is_finite(variable.value.numpy()):
            return str(variable.path)
    return None


def is_small(rate: float) -> bool:
    """Returns whether a learning rate is too small for weights to overflow."""
    return math.isfinite(rate) and rate < math.sqrt(np.finfo("float32").max)


def parts_of(
    optimizer: keras.optimizers.Optimizer | None,
) -> list[keras.optimizers.Optimizer]:
    """Returns the optimizers within one that have a learning rate each.

    There are none without an optimizer, as for a team.

    Example:

    >>> adam = keras.optimizers.Adam()
    >>> parts_of(keras.optimizers.LossScaleOptimizer(adam)) == [adam]
    True
    """
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return parts_of(optimizer.inner_optimizer)
    if isinstance(optimizer, keras.optimizers.MultiOptimizer):
        return list(optimizer.optimizers)
    return [] if optimizer is None else [optimizer]
