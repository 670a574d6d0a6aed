"""Gaussian distribution with independent dimensions."""

import math
from typing import Self

import numpy as np
import numpy.typing as npt
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape
from keras_rl2.basics.shapes import check_shape
from keras_rl2.basics.shapes import static_shape
from keras_rl2.distributions.distribution import Distribution

_LOG_2PI = math.log(2.0 * math.pi)


class DiagonalGaussian(Distribution):
    """Gaussian over A dimensions that do not depend on each other.

    Args:
        mean: `[B, A]` float.
        log_std: `[B, A]` float, or `[A]` for one standard deviation that does
            not depend on the observation.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> policy = DiagonalGaussian([[0.0, 1.0]], log_std=[0.0, 0.0])
    >>> policy.sample([[2.0, -1.0]]).numpy().tolist()
    [[2.0, 0.0]]
    >>> round(float(policy.entropy()[0]), 4)
    2.8379
    """

    def __init__(self, mean: TensorLike, log_std: TensorLike) -> None:
        check_rank(2, mean=mean)
        self.mean, log_std = as_float(mean, log_std)
        if len(static_shape(log_std) or ()) == 1:
            check_shape(self.mean.shape[1:], log_std=log_std)
            # [1, A] and not [B, A]: one exponential serves the whole batch.
            self.log_std = log_std[None]
        else:
            check_same_shape(mean=mean, log_std=log_std)
            self.log_std = log_std

    def log_prob(self, action: TensorLike) -> Tensor:
        """Returns the log-density of actions.

        Args:
            action: `[B, A]` float.

        Returns:
            `[B]` float32 or wider.

        Raises:
            ValueError: If the action is not of the mean's shape.
        """
        check_same_shape(mean=self.mean, action=action)
        action = ops.cast(action, self.mean.dtype)
        return self._log_prob_of_noise(
            (action - self.mean) * ops.exp(-self.log_std)
        )

    def entropy(self) -> Tensor:
        """Returns the entropy Σ (log std + log(2πe) / 2) in nats, `[B]`."""
        entropy = ops.sum(self.log_std + 0.5 * (1.0 + _LOG_2PI), axis=-1)
        return ops.broadcast_to(entropy, ops.shape(self.mean)[:1])

    def kl(self, other: Self) -> Tensor:
        """Returns the divergence KL(self || other) in nats.

            KL = Σ log(std₂/std₁) + (std₁² + (μ₁ - μ₂)²) / 2std₂² - 1/2

        Args:
            other: `DiagonalGaussian`. Of the same shape.

        Returns:
            `[B]` float32 or wider.

        Raises:
            ValueError: If the other is not of the same class and shape.
        """
        self._check_same_class(other)
        check_same_shape(mean=self.mean, other_mean=other.mean)
        log_ratio = self.log_std - other.log_std
        shift = (self.mean - other.mean) * ops.exp(-other.log_std)
        return ops.sum(
            0.5 * (ops.expm1(2.0 * log_ratio) + ops.square(shift)) - log_ratio,
            axis=-1,
        )

    def mode(self) -> Tensor:
        """Returns the mean, `[B, A]`."""
        return self.mean

    def sample(self, noise: TensorLike) -> Tensor:
        """Returns mean + std * noise, through which gradients flow.

        Args:
            noise: `[B, A]` float. Standard normal.

        Returns:
            `[B, A]` float32 or wider.

        Raises:
            ValueError: If the noise is not of the mean's shape.
        """
        check_same_shape(mean=self.mean, noise=noise)
        noise = ops.cast(noise, self.mean.dtype)
        return self.mean + ops.exp(self.log_std) * noise

    def sample_and_log_prob(self, noise: TensorLike) -> tuple[Tensor, Tensor]:
        """Turns noise into actions and returns their log-density as well.

        Args:
            noise: `[B, A]` float. Standard normal.

        Returns:
            tuple: actions `[B, A]` and their log-density `[B]`, float32 or
            wider.

        Raises:
            ValueError: If the noise is not of the mean's shape.
        """
        action = self.sample(noise)
        return action, self._log_prob_of_noise(ops.cast(noise, self.mean.dtype))

    def _log_prob_of_noise(self, noise: Tensor) -> Tensor:
        """Returns the log-density of mean + std * noise, [B]."""
        return -ops.sum(
            0.5 * (ops.square(noise) + _LOG_2PI) + self.log_std, axis=-1
        )


def normal(
    generator: np.random.Generator, shape: tuple[int, ...]
) -> npt.NDArray[np.float32]:
    """Draws standard normal noise, for the Gaussians.

    Args:
        generator: `np.random.Generator`.
        shape: tuple of int. Any shape.

    Returns:
        `[*shape]` float32.

    Example:

    >>> normal(np.random.default_rng(0), (128, 8)).dtype.name
    'float32'
    """
    return generator.standard_normal(shape, dtype=np.float32)
