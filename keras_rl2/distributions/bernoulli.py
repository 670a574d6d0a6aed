"""Independent Bernoulli distributions: K switches."""

from typing import Self

import numpy as np
import numpy.typing as npt
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_same_floats
from keras_rl2.basics.shapes import check_same_shape
from keras_rl2.distributions.distribution import Distribution

_SMALLEST_UNIFORM = np.float32(2.0**-25)


class Bernoulli(Distribution):
    """K independent switches, on with probability sigmoid(logits).

    Args:
        logits: `[B, K]` float. Log-odds of each switch.

    Raises:
        ValueError: If the logits are not of rank 2.

    Example:

    >>> policy = Bernoulli([[0.0, 1000.0]])
    >>> round(float(policy.log_prob([[1, 1]])[0]), 4)
    -0.6931
    """

    def __init__(self, logits: TensorLike) -> None:
        (self.logits,) = as_same_floats(2, logits=logits)

    def log_prob(self, action: TensorLike) -> Tensor:
        """Returns the log-probability of actions, `[B]`.

        Args:
            action: `[B, K]` int or bool. 1 where a switch is on, else 0.
        """
        check_same_shape(logits=self.logits, action=action)
        # log p = -softplus(-l) when on, -softplus(l) when off.
        sign = 1.0 - 2.0 * ops.cast(action, self.logits.dtype)
        return -ops.sum(ops.softplus(sign * self.logits), axis=-1)

    def entropy(self) -> Tensor:
        """Returns the sum of the switches' entropies in nats, `[B]`."""
        on, off = self._log_probs()
        return -ops.sum(ops.exp(on) * on + ops.exp(off) * off, axis=-1)

    def kl(self, other: Self) -> Tensor:
        """Returns the sum of the switches' divergences in nats, `[B]`."""
        self._check_same_class(other)
        check_same_shape(logits=self.logits, other_logits=other.logits)
        on, off = self._log_probs()
        other_on, other_off = other._log_probs()
        return ops.sum(
            ops.exp(on) * (on - other_on) + ops.exp(off) * (off - other_off),
            axis=-1,
        )

    def mode(self) -> Tensor:
        """Returns the more probable position, `[B, K]` int32; at 1/2 off."""
        return ops.cast(self.logits > 0, "int32")

    def sample(self, noise: TensorLike) -> Tensor:
        """Returns logits + noise > 0, `[B, K]` int32: 0 or 1.

        Args:
            noise: `[B, K]` float. Standard logistic.
        """
        logits, noise = as_same_floats(2, logits=self.logits, noise=noise)
        return ops.cast(logits + noise > 0, "int32")

    def _log_probs(self) -> tuple[Tensor, Tensor]:
        """Returns log p(1) and log p(0), each [B, K]."""
        return -ops.softplus(-self.logits), -ops.softplus(self.logits)


def logistic(
    generator: np.random.Generator, shape: tuple[int, ...]
) -> npt.NDArray[np.float32]:
    """Draws standard logistic noise, for `Bernoulli`.

    Returns:
        `[*shape]` float32, finite.

    Example:

    >>> logistic(np.random.default_rng(0), (128, 8)).dtype.name
    'float32'
    """
    draws = generator.random(shape, dtype=np.float32)
    np.maximum(draws, _SMALLEST_UNIFORM, out=draws)
    return np.subtract(np.log(draws), np.log1p(-draws), out=draws)
