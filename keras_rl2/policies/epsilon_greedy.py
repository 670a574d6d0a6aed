"""The probability of a random action."""

import keras
import numpy as np
import tensorflow as tf

from keras_rl2.basics.arguments import check_in_range

# Counts of steps that a schedule of Keras is run for at once.
_AHEAD = 256


class EpsilonGreedy:
    """The probability ε of a random action, over the steps of a training.

    Args:
        epsilon: float or `keras.optimizers.schedules.LearningRateSchedule`
            over environment steps; None for a linear fall from 1 to 0.05
            within 10 000 steps.

    Example:

    >>> EpsilonGreedy(None).present(env_steps=5_000)
    0.5249999761581421
    """

    def __init__(
        self,
        epsilon: float | keras.optimizers.schedules.LearningRateSchedule | None,
    ) -> None:
        if epsilon is None:
            epsilon = keras.optimizers.schedules.PolynomialDecay(
                1.0, 10_000, 0.05
            )
        self.epsilon = epsilon
        # ε by counts of steps, and the last count that was asked for.
        self._known: dict[int, float] = {}
        self._asked = 0
        if not isinstance(
            epsilon, keras.optimizers.schedules.LearningRateSchedule
        ):
            check_in_range(epsilon=(epsilon, 0.0, 1.0))
            return
        # Untraced, a schedule is a dozen calls of TensorFlow.
        self._function = tf.function(
            lambda counts: tf.map_fn(
                lambda count: tf.cast(epsilon(count), "float32"),
                counts,
                fn_output_signature="float32",
            ),
            input_signature=[tf.TensorSpec((None,), "int64")],
            autograph=False,
        ).get_concrete_function()

    def present(self, env_steps: int) -> float:
        """Returns ε at a count of environment steps."""
        if not callable(self.epsilon):
            return float(self.epsilon)
        if env_steps not in self._known:
            # A call of TensorFlow takes as long as a short round. Keras'
            # schedules depend on the count alone, and rounds are alike.
            stride = env_steps - self._asked
            pure = type(self.epsilon).__module__.startswith("keras.")
            counts = np.array([env_steps], np.int64)
            if pure and stride > 0:
                counts = env_steps + stride * np.arange(_AHEAD, dtype=np.int64)
            values = self._function(tf.constant(counts)).numpy()
            self._known = dict(
                zip(counts.tolist(), values.tolist(), strict=True)
            )
        self._asked = env_steps
        return self._known[env_steps]
