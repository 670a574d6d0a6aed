"""Epsilon-greedy exploration."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_rl2.basics.arguments import check_in_range

# Added to the value of an action that is taken regardless of the values.
_FORCED = 1e30
# Counts of steps that a schedule of Keras is run for at once.
_AHEAD = 256


class EpsilonGreedy:
    """Epsilon-greedy exploration, implemented as additive noise on Q-values.

    With noise, acting is a single graph: the largest of value + noise.

    Args:
        epsilon: float or `keras.optimizers.schedules.LearningRateSchedule`
            over environment steps; None for a linear fall from 1 to 0.05
            within 10 000 steps.

    Example:

    >>> exploring = EpsilonGreedy(1.0)
    >>> noise = exploring.draw(np.random.default_rng(0), (4,), 3, env_steps=0)
    >>> noise.shape, (noise > 0).sum(axis=-1).tolist()
    ((4, 3), [1, 1, 1, 1])
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

    def noise_part(
        self, actions: int, env_steps: int, ranked: bool
    ) -> dict[str, Any]:
        """Describes the noise, for those who draw it without the agent."""
        return {
            "kind": "epsilon_greedy",
            "size": actions,
            "epsilon": self.present(env_steps),
            "ranked": ranked,
        }

    def draw(
        self,
        generator: np.random.Generator,
        shape: Sequence[int],
        actions: int,
        env_steps: int,
        ranked: bool = False,
    ) -> np.ndarray:
        """Draws which actions are random.

        Returns:
            `[*shape, n]` float32: zeros, except for a number beyond all values
            at each action to be taken at random; or, with `ranked`, such
            numbers at all actions.
        """
        shape = tuple(shape)
        explores = generator.random(shape) < self.present(env_steps)
        if ranked:
            rank = 1.0 - generator.random((*shape, actions))
            forced = explores[..., None] * rank * _FORCED
            return forced.astype(np.float32)
        action = generator.integers(actions, size=shape)
        forced = (np.arange(actions) == action[..., None]) & explores[..., None]
        return np.where(forced, np.float32(_FORCED), np.float32(0.0))
