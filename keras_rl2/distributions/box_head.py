"""Real numbers within bounds."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import check_shape
from keras_rl2.distributions.gaussian import DiagonalGaussian
from keras_rl2.distributions.gaussian import SquashedGaussian
from keras_rl2.distributions.policy_head import PolicyHead
from keras_rl2.distributions.standard_noise import StandardNoise
from keras_rl2.spaces.space_configs import bounds_to_json

_MIN_LOG_STD = -20.0
_MAX_LOG_STD = 2.0


@keras.saving.register_keras_serializable(package="keras_rl2")
class BoxHead(PolicyHead):
    """Continuous actions from a Gaussian.

    The output of the network is the mean, `[B, A]`, with a separate `log_std`;
    or both concatenated, `[B, 2A]`, with the log standard deviation clipped to
    -20 ... 2. The policy's own action is flat, `[B, A]`.

    With `squash`, tanh brings the policy's own action into the unit box,
    [-1, 1] in each dimension, whatever the bounds are. This form is stored in
    replay and seen by critics, so that densities, entropies and the scale of
    noise do not depend on the bounds. `to_environment` maps the unit box to
    the bounds. A deterministic policy is the mode, which is tanh of the
    network's output: `head(output, log_std=keras.ops.zeros(A)).mode()`.

    Args:
        low: float or `[*shape]` float. Lower bounds; None, -inf or `"-inf"`,
            as in configs, where there is none.
        high: float or `[*shape]` float. Upper bounds, alike.
        shape: Sequence of int. Shape of the environment's action.
        dtype: str. Floating dtype of the space. Defaults to `"float32"`.
        squash: bool. Whether tanh squashes the Gaussian into the unit box, as
            SAC has it; else actions are clipped to the bounds only on their
            way to the environment, as PPO has it. Defaults to `False`.
        scaled: bool. Without `squash`: whether a dimension with finite bounds
            is in units of half their distance around their middle, instead of
            the environment's own units. Defaults to `False`.

    Raises:
        ValueError: If the bounds do not fit the shape or are not in order, or
            `squash` is asked for without finite bounds.

    Example:

    >>> head = BoxHead(-1.0, 1.0, shape=(2,))
    >>> action = head([[0.5, 3.0]], log_std=[0.0, 0.0]).mode()
    >>> head.to_environment(action).numpy().tolist()
    [[0.5, 1.0]]
    >>> head = BoxHead(0.0, 10.0, shape=(2,), squash=True)
    >>> action = head([[0.0, 99.0]], log_std=[0.0, 0.0]).mode()
    >>> action.numpy().tolist(), head.to_environment(action).numpy().tolist()
    ([[0.0, 1.0]], [[5.0, 10.0]])

    Reference:
        - [Haarnoja et al., 2018, appendix C](
          https://arxiv.org/abs/1801.01290)
    """

    action_dtype = "float32"

    def __init__(
        self,
        low: TensorLike,
        high: TensorLike,
        shape: Sequence[int],
        dtype: str = "float32",
        squash: bool = False,
        scaled: bool = False,
    ) -> None:
        self.shape = tuple(int(size) for size in shape)
        self.dtype = str(dtype)
        self.squash = bool(squash)
        self.scaled = bool(scaled)
        self.low = _bounds(low, -math.inf, self.shape)
        self.high = _bounds(high, math.inf, self.shape)
        size = math.prod(self.shape)
        self.parameter_sizes = (size, 2 * size)
        self.log_std_size = size
        self.noise = StandardNoise("normal", size)
        self.action_shape = (size,)
        low, high = self.low.ravel(), self.high.ravel()
        below, above = np.isfinite(low), np.isfinite(high)
        if not (low <= high).all() or (squash and not (below & above).all()):
            raise ValueError(
                "Expected low <= high, and finite bounds to squash into. "
                f"Received: low={bounds_to_json(self.low)}, "
                f"high={bounds_to_json(self.high)}"
            )
        self._bounded = bool((below | above).any())
        self._lowest, self._highest = _float32_within(low, high)
        self._centre, self._half = _centre_and_half(
            np.where(below & above, low, -1.0),
            np.where(below & above, high, 1.0),
        )
        unit = self.squash and np.all(low == -1) and np.all(high == 1)
        same = unit if self.squash else not self._bounded
        self.changes_action = not (same and len(self.shape) == 1)

    def _distribution(
        self, parameters: Tensor, log_std: Tensor | None
    ) -> DiagonalGaussian | SquashedGaussian:
        """Returns a Gaussian from `[B, A]` with `log_std`, or `[B, 2A]`."""
        size = self.log_std_size
        if (parameters.shape[-1] == size) == (log_std is None):
            raise ValueError(
                f"Expected a log_std beside parameters of width {size} and "
                f"none beside width {2 * size}. Received: parameters of width "
                f"{parameters.shape[-1]}, log_std={log_std}"
            )
        if log_std is None:
            parameters, log_std = ops.split(parameters, 2, axis=-1)  # [B, A]
            log_std = ops.clip(log_std, _MIN_LOG_STD, _MAX_LOG_STD)
        else:
            check_shape((size,), log_std=log_std)
        if self.squash:
            return SquashedGaussian(parameters, log_std)
        return DiagonalGaussian(parameters, log_std)

    def to_environment(self, action: Tensor) -> Tensor:
        """Converts to the environment's units, and clips to the bounds.

        Actions outside the unit box, by noise that was added, become the
        bound. Both bounds can be reached exactly.

        Args:
            action: `[B, A]` float.

        Returns:
            `[B, *shape]` float32.
        """
        action = ops.cast(action, "float32")
        if self.squash or self.scaled:
            action = action * self._half + self._centre
        if self._bounded:
            action = ops.maximum(action, self._lowest)
            action = ops.minimum(action, self._highest)
        return super().to_environment(action)

    def from_environment(self, action: Tensor) -> Tensor:
        """Flattens, and converts to the policy's units: `[B, A]`."""
        action = super().from_environment(action)
        if self.squash or self.scaled:
            action = self._in_own_units(action)
        return ops.clip(action, -1.0, 1.0) if self.squash else action

    def _draw(
        self, generator: np.random.Generator, shape: tuple[int, ...], mask: Any
    ) -> npt.NDArray[Any]:
        """Draws from the unit box or the bounds.

        Without `squash`, as `gymnasium.spaces.Box.sample`: a dimension with
        one bound is drawn exponentially beyond it, one with none normally.
        """
        if self.squash:
            return generator.uniform(-1.0, 1.0, shape).astype("float32")
        low, high = self.low.ravel(), self.high.ravel()
        action = _draw_within(generator, shape, low, high)
        action = np.clip(action, self._lowest, self._highest).astype("float32")
        return self._in_own_units(action) if self.scaled else action

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        return {
            "low": bounds_to_json(self.low),
            "high": bounds_to_json(self.high),
            "shape": list(self.shape),
            "dtype": self.dtype,
            "squash": self.squash,
            "scaled": self.scaled,
        }

    def _in_own_units(self, action: Any) -> Any:
        """Converts `[..., A]` from the environment's units."""
        # A dimension with equal bounds has only one action.
        half = np.where(self._half > 0, self._half, np.float32(1.0))
        return (action - self._centre) / half


def _bounds(
    bound: TensorLike, unbounded: float, shape: tuple[int, ...]
) -> npt.NDArray[np.float64]:
    """Takes bounds as a float64 array of the space's shape."""
    array = np.asarray(bound, dtype=object)
    array = np.where(array == None, unbounded, array)  # noqa: E711
    return np.broadcast_to(array.astype("float64"), shape)


def _float32_within(
    low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Rounds bounds inwards: the nearest float32 of 0.3 is more than 0.3."""
    infinity = np.float32(np.inf)
    lower, upper = low.astype("float32"), high.astype("float32")
    return (
        np.where(lower < low, np.nextafter(lower, infinity), lower),
        np.where(upper > high, np.nextafter(upper, -infinity), upper),
    )


def _centre_and_half(
    low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Returns the middle of the bounds and half their distance.

    Half the distance is rounded up, and counted from the rounded middle: so
    the ends of the unit box reach both bounds, and clipping does the rest.
    """
    centre = (0.5 * low + 0.5 * high).astype("float32")
    exact = np.maximum(high - centre, centre - low)
    half = exact.astype("float32")
    target = np.where(half < exact, np.float32(np.inf), half)
    return centre, np.nextafter(half, target)


def _draw_within(
    generator: np.random.Generator,
    shape: tuple[int, ...],
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Draws numbers by how each dimension is bounded, float64."""
    below, above = np.isfinite(low), np.isfinite(high)
    low, high = np.where(below, low, 0.0), np.where(above, high, 0.0)
    share = generator.random(shape)
    beyond = generator.standard_exponential(shape)
    return np.select(
        [below & above, below, above],
        [(1.0 - share) * low + share * high, low + beyond, high - beyond],
        generator.standard_normal(shape),
    )
