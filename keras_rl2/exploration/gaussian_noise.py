"""Noise that is independent at each step."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_rl2.exploration.exploration_noise import ExplorationNoise
from keras_rl2.exploration.exploration_noise import Noise
from keras_rl2.exploration.exploration_noise import Scale
from keras_rl2.exploration.exploration_noise import State
from keras_rl2.exploration.exploration_noise import check_shape_of_draw


@keras.saving.register_keras_serializable(package="keras_rl2")
class GaussianNoise(ExplorationNoise):
    """Independent normal noise, the exploration of TD3.

    Args:
        scale: float or `keras.optimizers.schedules.LearningRateSchedule`.
            Standard deviation, 0 or more, in half the range of an action; a
            schedule is over the steps of the environments. Defaults to `0.1`.

    Raises:
        ValueError: If the scale is neither, or below 0.

    Example:

    >>> noise = GaussianNoise(0.2)
    >>> drawn, state = noise.draw(np.random.default_rng(0), (1000, 2, 3))
    >>> drawn.shape, round(float(drawn.std()), 2), state
    ((1000, 2, 3), 0.2, None)
    >>> schedule = keras.optimizers.schedules.PolynomialDecay(0.5, 10_000, 0.1)
    >>> drawn, _ = GaussianNoise(schedule).draw(
    ...     np.random.default_rng(0), (1000, 2, 3), step=5_000)
    >>> round(float(drawn.std()), 2)
    0.3

    Reference:
        - [Fujimoto et al., 2018, TD3](https://arxiv.org/abs/1802.09477)
    """

    def __init__(self, scale: Scale = 0.1) -> None:
        super().__init__(scale)

    def draw(
        self,
        generator: np.random.Generator,
        shape: Sequence[int],
        step: int = 0,
        state: State = None,
    ) -> tuple[Noise, None]:
        """Draws scale * N(0, 1): `[T, B, A]` float32, and no state."""
        shape = check_shape_of_draw(shape)
        if state is not None:
            raise ValueError(
                "Expected no state: GaussianNoise remembers nothing. "
                f"Received: state={state}"
            )
        scale = np.float32(self._scale_at(step))
        noise = generator.standard_normal(shape, dtype=np.float32)
        return np.multiply(noise, scale, out=noise), None
