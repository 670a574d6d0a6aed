"""Temporally correlated noise."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.exploration.exploration_noise import ExplorationNoise
from keras_rl2.exploration.exploration_noise import Noise
from keras_rl2.exploration.exploration_noise import Scale
from keras_rl2.exploration.exploration_noise import State
from keras_rl2.exploration.exploration_noise import check_shape_of_draw
from keras_rl2.exploration.exploration_noise import finite_number


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
        theta, dt = finite_number("theta", theta), finite_number("dt", dt)
        if not (theta > 0 and dt > 0 and theta * dt < 2):
            raise ValueError(
                "Expected theta and dt above 0, and theta * dt below 2. "
                f"Received: theta={theta}, dt={dt}"
            )
        self._theta, self._dt = theta, dt

    @property
    def theta(self) -> float:
        """Rate of the return to 0."""
        return self._theta

    @property
    def dt(self) -> float:
        """Time of one step."""
        return self._dt

    def draw(
        self,
        generator: np.random.Generator,
        shape: Sequence[int],
        step: int = 0,
        state: State = None,
    ) -> tuple[Noise, npt.NDArray[np.float64]]:
        """Draws the next T steps: `[T, B, A]` float32, and the state `[B, A]`.

        The state is the last noise, in float64; a row of zeros starts again in
        that environment.
        """
        shape = check_shape_of_draw(shape)
        position = _begin(state, shape[1:])
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


def _begin(state: State, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Returns the first value: the last one of the state, or 0."""
    if state is None:
        return np.zeros(shape)
    position = np.asarray(state, dtype="float64")
    if position.shape != shape:
        raise ValueError(
            f"Expected a state of shape (B, A) = {shape}. "
            f"Received: state of shape {position.shape}"
        )
    return position
