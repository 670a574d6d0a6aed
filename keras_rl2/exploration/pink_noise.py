"""Noise that is correlated over all spans of time."""

from collections.abc import Sequence

import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.exploration.exploration_noise import ExplorationNoise
from keras_rl2.exploration.exploration_noise import Noise
from keras_rl2.exploration.exploration_noise import Scale
from keras_rl2.exploration.exploration_noise import State
from keras_rl2.exploration.exploration_noise import check_shape_of_draw

# Share of each part that a step keeps: none, or one that falls to 1 / e within
# 4, 16, 64 and 256 steps.
_KEPT = np.array([0.0, *np.exp(-1.0 / 4.0 ** np.arange(1, 5))])
_DRAWN = np.sqrt(1.0 - _KEPT**2)


@keras.saving.register_keras_serializable(package="keras_rl2")
class PinkNoise(ExplorationNoise):
    """Normal noise with slow and fast changes in equal shares.

    The power of pink noise falls as 1 / frequency. It lies between white noise,
    which is independent at each step and hardly moves a body with inertia, and
    the noise of Ornstein and Uhlenbeck, which keeps its direction so long that
    few other actions are tried. Each step has the distribution of
    `GaussianNoise`.

        x = scale Σ_k x_k / √5,    x_k' = c_k x_k + √(1 - c_k²) N(0, 1)

    where x_0 is independent at each step (c_0 = 0), and the others are
    remembered for 4, 16, 64 and 256 steps, c_k = exp(-1 / 4^k).

    Args:
        scale: float or `keras.optimizers.schedules.LearningRateSchedule`.
            Standard deviation, 0 or more, in half the range of an action; a
            schedule is over the steps of the environments. Defaults to `0.1`.

    Raises:
        ValueError: If the scale is neither, or below 0.

    Example:

    >>> noise = PinkNoise(0.2)
    >>> drawn, state = noise.draw(np.random.default_rng(0), (1000, 200, 3))
    >>> drawn.shape, round(float(drawn.std()), 1), state.shape
    ((1000, 200, 3), 0.2, (200, 3, 5))

    Reference:
        - [Eberhard et al., 2023](https://openreview.net/forum?id=hQ9V5QN27eS)
    """

    def __init__(self, scale: Scale = 0.1) -> None:
        super().__init__(scale)

    def draw(
        self,
        generator: np.random.Generator,
        shape: Sequence[int],
        step: int = 0,
        state: State = None,
    ) -> tuple[Noise, npt.NDArray[np.float64]]:
        """Draws the next T steps: `[T, B, A]` float32.

        The state `[B, A, 5]` is each part at the last step, of a standard
        deviation of 1.
        """
        shape = check_shape_of_draw(shape)
        parts = _begin(generator, state, (*shape[1:], len(_KEPT)))
        path = _DRAWN * generator.standard_normal((*shape, len(_KEPT)))
        for moved in path:
            moved += _KEPT * parts
            parts = moved
        scale = self._scale_at(step) / np.sqrt(len(_KEPT))
        return (scale * path.sum(axis=-1)).astype("float32"), parts.copy()


def _begin(
    generator: np.random.Generator, state: State, shape: tuple[int, ...]
) -> npt.NDArray[np.float64]:
    """Returns the first values of the parts: those of the state, or random."""
    if state is None:
        return generator.standard_normal(shape)
    parts = np.asarray(state, dtype="float64")
    if parts.shape != shape:
        raise ValueError(
            f"Expected a state of shape (B, A, {shape[-1]}) = {shape}. "
            f"Received: state of shape {parts.shape}"
        )
    return parts
