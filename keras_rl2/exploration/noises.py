"""Exploration noise: the interface, three kinds, and their short forms."""

import abc
import dataclasses
import math
import numbers
from collections.abc import Sequence
from typing import Any
from typing import Self
from typing import TypeAlias

import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.exploration.policy_noise import Drawn
from keras_rl2.exploration.policy_noise import PolicyNoise
from keras_rl2.exploration.policy_noise import Shape

Noise = npt.NDArray[np.float32]
State = npt.NDArray[np.float64] | None
Scale: TypeAlias = float | keras.optimizers.schedules.LearningRateSchedule

# Share of each part that a step keeps: none, or one that falls to 1 / e within
# 4, 16, 64 and 256 steps.
_KEPT = np.array([0.0, *np.exp(-1.0 / 4.0 ** np.arange(1, 5))])
_DRAWN = np.sqrt(1.0 - _KEPT**2)


class ExplorationNoise(abc.ABC):
    """Base of all noises: an immutable object that holds settings only.

    Two are equal if their classes and configs are. A custom noise is a subclass
    with `draw`, and with `get_config` if it has more settings.

    Args:
        scale: float or `keras.optimizers.schedules.LearningRateSchedule`. 0
            or more and finite, in half the range of an action; a schedule is
            over the steps of the environments. Defaults to `0.1`.

    Example:

    >>> class Steady(ExplorationNoise):
    ...     def draw(self, generator, shape, step=0, state=None):
    ...         return np.full(shape, self._scale_at(step), "float32"), state
    >>> drawn, _ = Steady(0.5).draw(np.random.default_rng(0), (2, 1))
    >>> drawn.tolist()
    [[0.5], [0.5]]
    """

    def __init__(self, scale: Scale = 0.1) -> None:
        if not isinstance(
            scale, keras.optimizers.schedules.LearningRateSchedule
        ):
            number = isinstance(scale, numbers.Real)
            if not number or scale is True or not 0 <= scale < math.inf:
                raise ValueError(
                    "Expected scale to be a finite number of 0 or more, or a "
                    f"schedule. Received: scale={scale!r}"
                )
            scale = float(scale)
        self.scale = scale

    @abc.abstractmethod
    def draw(
        self,
        generator: np.random.Generator,
        shape: Sequence[int],
        step: int = 0,
        state: State = None,
    ) -> tuple[Noise, State]:
        """Draws the noise of several steps at once.

        Args:
            generator: `np.random.Generator`.
            shape: tuple of int. `(T, B, A)`: time, environments, dimensions of
                an action.
            step: int. Environment steps so far, where a schedule is asked for
                the scale of the whole draw. Defaults to `0`.
            state: `[B, ...]` float64 or None. State that the last call
                returned, to continue from there; None to begin. Defaults to
                `None`.

        Returns:
            tuple: the noise `[T, B, A]` float32, in half the range of an
            action, not clipped; and the state after it, or None.
        """

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        scale = self.scale
        if not isinstance(scale, float):
            scale = keras.saving.serialize_keras_object(scale)
        return {"scale": scale}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Makes a noise from its config."""
        scale = config.get("scale")
        if isinstance(scale, dict):
            scale = keras.saving.deserialize_keras_object(scale)
            config = {**config, "scale": scale}
        return cls(**config)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self.get_config() == other.get_config())

    def __repr__(self) -> str:
        settings = self.get_config().items()
        arguments = ", ".join(f"{name}={value!r}" for name, value in settings)
        return f"{type(self).__name__}({arguments})"

    def _scale_at(self, step: int) -> float:
        """Returns the scale, of a schedule the one at a step."""
        if isinstance(self.scale, float):
            return self.scale
        return float(keras.ops.convert_to_numpy(self.scale(step)))


@keras.saving.register_keras_serializable(package="keras_rl2")
class GaussianNoise(ExplorationNoise):
    """Independent normal noise, the exploration of TD3.

    Args:
        scale: float or `keras.optimizers.schedules.LearningRateSchedule`.
            Standard deviation, in half the range of an action. Defaults to
            `0.1`.
        lowest: float or None. If given, each environment has a standard
            deviation of its own, drawn once, uniformly between `lowest` and
            `scale`, so that some explore and others follow the policy: the
            exploration of FastTD3. Defaults to `None`.

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
        - [Seo et al., 2025, FastTD3](https://arxiv.org/abs/2505.22642)
    """

    def __init__(self, scale: Scale = 0.1, lowest: float | None = None) -> None:
        super().__init__(scale)
        highest = self.scale if isinstance(self.scale, float) else math.inf
        if lowest is not None and not 0 <= lowest <= highest:
            raise ValueError(
                "Expected lowest from 0 to the scale. "
                f"Received: lowest={lowest}, scale={scale}"
            )
        self.lowest = lowest

    def draw(
        self,
        generator: np.random.Generator,
        shape: Sequence[int],
        step: int = 0,
        state: State = None,
    ) -> tuple[Noise, State]:
        """Draws `[T, B, A]`; the state `[B, 1]` are places within a range."""
        scale: Any = self._scale_at(step)
        if self.lowest is not None:
            new = state is None
            state = generator.random((shape[1], 1)) if new else np.array(state)
            # A schedule may fall below it.
            lowest = min(self.lowest, scale)
            scale = lowest + (scale - lowest) * state
        noise = generator.standard_normal(shape, dtype=np.float32)
        return np.multiply(noise, np.float32(scale), out=noise), state

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        own = {} if self.lowest is None else {"lowest": self.lowest}
        return {**super().get_config(), **own}


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
            Volatility, in half the range of an action. Defaults to `0.2`.
        theta: float. Rate of the return to 0, above 0. Defaults to `0.15`.
        dt: float. Time of one step, above 0. Defaults to `0.01`.

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
        """Draws `[T, B, A]`; the state `[B, A]` is the last noise."""
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
            Standard deviation, in half the range of an action. Defaults to
            `0.1`.

    Example:

    >>> noise = PinkNoise(0.2)
    >>> drawn, state = noise.draw(np.random.default_rng(0), (1000, 200, 3))
    >>> drawn.shape, round(float(drawn.std()), 1), state.shape
    ((1000, 200, 3), 0.2, (200, 3, 5))

    Reference:
        - [Eberhard et al., 2023](https://openreview.net/forum?id=hQ9V5QN27eS)
    """

    def draw(
        self,
        generator: np.random.Generator,
        shape: Sequence[int],
        step: int = 0,
        state: State = None,
    ) -> tuple[Noise, State]:
        """Draws `[T, B, A]`; the state `[B, A, 5]` is the last parts."""
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


GivenNoise = ExplorationNoise | float | str | dict[str, Any]
"""Exploration noise, or a short form of one."""

_KINDS: dict[Any, type[ExplorationNoise]] = {
    "gaussian": GaussianNoise,
    "ornstein_uhlenbeck": OrnsteinUhlenbeckNoise,
    "pink": PinkNoise,
}


def exploration_noise(x: GivenNoise | None) -> ExplorationNoise | None:
    """Makes exploration noise from a short form.

    Args:
        x: None for no noise; float, the scale of a `GaussianNoise`; str, the
            name `"gaussian"`, `"ornstein_uhlenbeck"` or `"pink"`; dict, a
            config such as `{"class_name": "gaussian", "config": {"scale":
            0.2}}` or one by `keras.saving.serialize_keras_object`; or an
            `ExplorationNoise`.

    Returns:
        `ExplorationNoise` or None.

    Example:

    >>> exploration_noise(0.2)
    GaussianNoise(scale=0.2)
    >>> exploration_noise("ornstein_uhlenbeck")
    OrnsteinUhlenbeckNoise(scale=0.2, theta=0.15, dt=0.01)
    """
    noise: Any = x
    if isinstance(x, numbers.Real):
        noise = GaussianNoise(x)
    elif isinstance(x, dict) and "registered_name" in x:
        noise = keras.saving.deserialize_keras_object(x)
    elif isinstance(x, str | dict):
        config: Any = {"class_name": x} if isinstance(x, str) else x
        kind = _KINDS.get(config.get("class_name"))
        noise = kind.from_config(config.get("config", {})) if kind else x
    if noise is not None and not isinstance(noise, ExplorationNoise):
        raise ValueError(
            f"Expected exploration noise: None, a number, one of {[*_KINDS]}, "
            f"a config or an ExplorationNoise. Received: {x!r}"
        )
    return noise


@dataclasses.dataclass(frozen=True)
class AddedNoise(PolicyNoise):
    """The noise of a policy to whose actions exploration noise is added.

    Args:
        noise: `ExplorationNoise` or None. None for zeros.
        size: int. Dimensions of an action, A.
        step: int. Environment steps so far. Defaults to `0`.
        kind: str or None. Its kind in `parts`, without a scale; None for the
            class of the noise. Defaults to `None`.

    Example:

    >>> AddedNoise(GaussianNoise(0.5), size=1).parts
    [{'kind': 'GaussianNoise', 'size': 1, 'scale': 0.5}]
    """

    noise: ExplorationNoise | None
    size: int
    step: int = 0
    kind: str | None = None

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Description of the noise, with its present scale."""
        if self.noise is None or self.kind:
            return [{"kind": self.kind or "zeros", "size": self.size}]
        named = {"kind": type(self.noise).__name__, "size": self.size}
        scale = {"scale": self.noise._scale_at(self.step)}
        return [named | self.noise.get_config() | scale]

    def draw(
        self, generator: np.random.Generator, shape: Shape, state: Any = None
    ) -> Drawn:
        """Draws the noise by its present scale."""
        whole = (*shape, self.size)
        if self.noise is None:
            return np.zeros(whole, np.float32), state
        # Noise is drawn over time, of which `(B, A)` is one step.
        drawn, state = self.noise.draw(
            generator, (1, *whole)[-3:], step=self.step, state=state
        )
        return drawn.reshape(whole), state
