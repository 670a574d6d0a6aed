"""Exploration noise of several kinds."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_rl2.exploration.exploration_noise import ExplorationNoise
from keras_rl2.exploration.exploration_noise import Noise
from keras_rl2.exploration.exploration_noise import Scale
from keras_rl2.exploration.exploration_noise import State

# Share of each part that a step keeps: none, or one that falls to 1 / e within
# 4, 16, 64 and 256 steps.
_KEPT = np.array([0.0, *np.exp(-1.0 / 4.0 ** np.arange(1, 5))])
_DRAWN = np.sqrt(1.0 - _KEPT**2)


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
    ) -> tuple[Noise, State]:
        """Draws scale * N(0, 1): `[T, B, A]` float32, and no state."""
        scale = np.float32(self._scale_at(step))
        noise = generator.standard_normal(shape, dtype=np.float32)
        return np.multiply(noise, scale, out=noise), None


@keras.saving.register_keras_serializable(package="keras_rl2")
class OrnsteinUhlenbeckNoise(ExplorationNoise):
    """Noise that keeps its direction for a while, the exploration of DDPG.

        x' = x + theta (0 - x) dt + scale √dt N(0, 1),    x = 0 at first

    It moves bodies with inertia further than noise that is independent at each
    step. It is remembered for about 1 / (theta dt) steps, and after many times
    that its standard deviation is

        scale √dt / √(1 - (1 - theta dt)²)

    With the defaults that is 667 steps and 0.365, while the first noise is of
    0.02 only: short episodes want a larger `dt`.

    Args:
        scale: float or `keras.optimizers.schedules.LearningRateSchedule`.
            Volatility, 0 or more, in half the range of an action; a schedule
            is over the steps of the environments. Defaults to `0.2`.
        theta: float. Rate of the return to 0, above 0. Defaults to `0.15`.
        dt: float. Time of one step, above 0. Defaults to `0.01`.

    Raises:
        ValueError: If a setting is out of its bounds, or theta * dt is not
            below 2: the noise would grow for ever.

    Example:

    >>> noise = OrnsteinUhlenbeckNoise()
    >>> generator = np.random.default_rng(0)
    >>> first, state = noise.draw(generator, (10, 4, 2))
    >>> then, state = noise.draw(generator, (10, 4, 2), state=state)
    >>> first.shape, state.shape
    ((10, 4, 2), (4, 2))

    Reference:
        - [Uhlenbeck and Ornstein, 1930](
          https://doi.org/10.1103/PhysRev.36.823)
        - [Lillicrap et al., 2015, DDPG](https://arxiv.org/abs/1509.02971)
    """

    def __init__(
        self, scale: Scale = 0.2, theta: float = 0.15, dt: float = 0.01
    ) -> None:
        super().__init__(scale)
        self.theta, self.dt = float(theta), float(dt)
        if not (theta > 0 and dt > 0 and theta * dt < 2):
            raise ValueError(
                "Expected theta and dt above 0, and theta * dt below 2. "
                f"Received: theta={theta}, dt={dt}"
            )

    def draw(
        self,
        generator: np.random.Generator,
        shape: Sequence[int],
        step: int = 0,
        state: State = None,
    ) -> tuple[Noise, State]:
        """Draws the next T steps: `[T, B, A]` float32, and the state `[B, A]`.

        The state is the last noise, in float64; a row of zeros starts again in
        that environment.
        """
        position = np.zeros(shape[1:]) if state is None else np.asarray(state)
        kept = 1.0 - self.theta * self.dt
        volatility = self._scale_at(step) * math.sqrt(self.dt)
        path = volatility * generator.standard_normal(shape)
        for moved in path:
            moved += kept * position
            position = moved
        return path.astype("float32"), position.copy()

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        return {**super().get_config(), "theta": self.theta, "dt": self.dt}


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
    ) -> tuple[Noise, State]:
        """Draws the next T steps: `[T, B, A]` float32.

        The state `[B, A, 5]` is each part at the last step, of a standard
        deviation of 1.
        """
        count = len(_KEPT)
        parts = state
        if parts is None:
            parts = generator.standard_normal((*shape[1:], count))
        path = _DRAWN * generator.standard_normal((*shape, count))
        for moved in path:
            moved += _KEPT * parts
            parts = moved
        scale = self._scale_at(step) / np.sqrt(count)
        return (scale * path.sum(axis=-1)).astype("float32"), parts.copy()
