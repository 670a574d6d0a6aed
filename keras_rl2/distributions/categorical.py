"""Categorical distribution: one of A actions."""

from typing import Self

import numpy as np
import numpy.typing as npt
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_same_floats
from keras_rl2.basics.shapes import check_same_shape
from keras_rl2.basics.shapes import check_shape
from keras_rl2.distributions.distribution import Distribution

_SMALLEST_EXPONENTIAL = np.float32(1e-30)


class Categorical(Distribution):
    """One of A actions, with probabilities softmax(logits).

    `forbid` takes actions out of it; infinite logits give NaN.

    Args:
        logits: `[B, A]` float. Unnormalised log-probabilities.

    Raises:
        ValueError: If the logits are not of rank 2.

    Example:

    >>> policy = Categorical([[0.0, 0.0], [-1000.0, 0.0]])
    >>> policy.mode().numpy().tolist()
    [0, 1]
    >>> round(float(policy.entropy()[0]), 4)
    0.6931
    """

    def __init__(self, logits: TensorLike) -> None:
        (self.logits,) = as_same_floats(2, logits=logits)
        # This is not cached lazily: a tensor kept from one traced function may
        # not be used in another, and an unused one is pruned from the graph.
        self.log_probs = ops.log_softmax(self.logits, axis=-1)

    def log_prob(self, action: TensorLike) -> Tensor:
        """Returns the log-probability of actions, `[B]`.

        Args:
            action: `[B]` int. Actions in 0 ... A-1.
        """
        check_shape(self.logits.shape[:1], action=action)
        # A one-hot product and a gather take equally long with their
        # gradients; the product needs no scatter, which XLA prefers.
        chosen = ops.one_hot(  # [B, A]
            ops.cast(action, "int32"),
            self.logits.shape[-1],
            dtype=self.logits.dtype,
        )
        return ops.sum(self.log_probs * chosen, axis=-1)

    def entropy(self) -> Tensor:
        """Returns the entropy -Σ p log p in nats, `[B]`."""
        return -ops.sum(ops.exp(self.log_probs) * self.log_probs, axis=-1)

    def kl(self, other: Self) -> Tensor:
        """Returns KL(self || other) = Σ p (log p - log q) in nats, `[B]`."""
        self._check_same_class(other)
        check_same_shape(logits=self.logits, other_logits=other.logits)
        difference = self.log_probs - other.log_probs
        return ops.sum(ops.exp(self.log_probs) * difference, axis=-1)

    def mode(self) -> Tensor:
        """Returns the likeliest action, `[B]` int32; of equals the first."""
        return argmax(self.logits)

    def sample(self, noise: TensorLike) -> Tensor:
        """Returns argmax(logits + noise), `[B]` int32: the Gumbel-max trick.

        Args:
            noise: `[B, A]` float. Standard Gumbel.
        """
        logits, noise = as_same_floats(2, logits=self.logits, noise=noise)
        return argmax(logits + noise)


def argmax(scores: TensorLike) -> Tensor:
    """Returns the index of the largest score on the last axis.

    It converts to LiteRT, unlike `keras.ops.argmax`.

    Args:
        scores: `[..., A]`. Logits or values; of equal ones the first counts.

    Returns:
        `[...]` int32.

    Example:

    >>> argmax([[0.5, 2.0], [1.0, 1.0]]).numpy().tolist()
    [1, 0]
    """
    # ops.argmax treats -0.0 by bitwise operations that LiteRT does not have.
    _, index = ops.top_k(scores, k=1, sorted=False)
    return ops.cast(ops.squeeze(index, axis=-1), "int32")


def gumbel(
    generator: np.random.Generator, shape: tuple[int, ...]
) -> npt.NDArray[np.float32]:
    """Draws standard Gumbel noise, for `Categorical`, `MultiCategorical`.

    Returns:
        `[*shape]` float32, finite.

    Example:

    >>> gumbel(np.random.default_rng(0), (128, 8, 4)).shape
    (128, 8, 4)
    """
    draws = generator.standard_exponential(shape, dtype=np.float32)
    # A draw can be exactly 0, whose logarithm is not finite.
    np.maximum(draws, _SMALLEST_EXPONENTIAL, out=draws)
    np.log(draws, out=draws)
    return np.negative(draws, out=draws)
