"""Noise for sampling actions: the only randomness in acting.

Drawn with NumPy, for a whole rollout at once: the actor, which runs outside
TensorFlow, and the training graph then share one definition of sampling.
"""

import numpy as np
import numpy.typing as npt

Noise = npt.NDArray[np.float32]
Shape = tuple[int, ...]

_SMALLEST_EXPONENTIAL = np.float32(1e-30)
_SMALLEST_UNIFORM = np.float32(2.0**-25)


def gumbel(generator: np.random.Generator, shape: Shape) -> Noise:
    """Draws standard Gumbel noise, for `Categorical`, `MultiCategorical`.

    Args:
        generator: `np.random.Generator`.
        shape: tuple of int. Any shape.

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


def logistic(generator: np.random.Generator, shape: Shape) -> Noise:
    """Draws standard logistic noise, for `Bernoulli`.

    Args:
        generator: `np.random.Generator`.
        shape: tuple of int. Any shape.

    Returns:
        `[*shape]` float32, finite.

    Example:

    >>> logistic(np.random.default_rng(0), (128, 8)).dtype.name
    'float32'
    """
    draws = generator.random(shape, dtype=np.float32)
    np.maximum(draws, _SMALLEST_UNIFORM, out=draws)
    return np.subtract(np.log(draws), np.log1p(-draws), out=draws)


def normal(generator: np.random.Generator, shape: Shape) -> Noise:
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
