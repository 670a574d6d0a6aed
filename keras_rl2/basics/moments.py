"""Running mean and variance, which outliers do not move.

Of a mean and a variance over `n` examples, a value further from the mean than

    k = min(max_deviations, sqrt(n))

standard deviations is replaced by one at that distance. A single value then
multiplies the variance by 1 + k² / n at most, which is 2 where n is below
`max_deviations` squared, and close to 1 later on. A value seen once in n
otherwise equal examples lies sqrt(n) deviations away: rare events are no
outliers, however rare they are. Where all values have moved, each of them lets
the variance grow by that factor, and it reaches them within about
n / k² log(distance²) examples.
"""

from typing import Any
from typing import NamedTuple

import numpy as np

MAX_DEVIATIONS = 100.0
"""How far values may lie from the mean by default, in deviations."""

FEWEST_EXAMPLES = 1000
"""Number of examples before any value can count as an outlier."""

_ROUNDING = float(np.finfo(np.float32).eps)


class Moments(NamedTuple):
    """Mean and variance of examples: floats, arrays or tensors in float64.

    Attributes:
        mean: Mean of the examples.
        variance: Their variance, divided by N rather than N - 1.
        count: Their number N.

    Example:

    >>> moments = Moments(0.0, 1.0, 10_000.0)
    >>> moments.bounded(np.array([50.0, 1e6]), 100.0, np).tolist()
    [50.0, 100.0]

    Reference:
        - [Chan, Golub and LeVeque, 1979](
          http://i.stanford.edu/pub/cstr/reports/cs/tr/79/773/CS-TR-79-773.pdf)
    """

    mean: Any
    variance: Any
    count: Any

    def merged(self, mean: Any, variance: Any, count: Any) -> "Moments":
        """Returns the moments of these and other examples.

        Moments of two sets are merged exactly, so that the order and the size
        of the batches do not matter:

            δ = μ_b - μ
            μ ← μ + δ n_b / (n + n_b)
            σ² ← (n σ² + n_b σ_b² + δ² n n_b / (n + n_b)) / (n + n_b)

        Args:
            mean: Mean of the others.
            variance: Their variance, divided by N rather than N - 1.
            count: Their number, above 0.
        """
        total = self.count + count
        delta = mean - self.mean
        squares = self.variance * self.count + variance * count
        squares = squares + delta * delta * (self.count * count / total)
        mean = self.mean + delta * (count / total)
        return Moments(mean, squares / total, total)

    def bounded(
        self,
        x: Any,
        max_deviations: float | None,
        ops: Any,
        prior: float = 0.0,
    ) -> Any:
        """Returns examples without outliers.

        Args:
            x: `[..., *D]`. Examples; D are the axes of the moments.
            max_deviations: float or None. Largest distance from the mean, in
                standard deviations; None for no limit.
            ops: Module of the functions of arrays: `numpy` or `keras.ops`.
            prior: float. Weight in the moments, in examples, of a prior of
                mean 0 and variance 1. Defaults to `0.0`.

        Returns:
            `[..., *D]`. Values that are too far away are moved to the largest
            distance, except before 1000 examples, or if all examples were
            equal, so that their scale is unknown.
        """
        if max_deviations is None:
            return x
        mean, variance, count = self
        # The prior and the rounding error of a constant in float32 are no
        # scale.
        per_square = 2.0 * prior + _ROUNDING**2 * count
        unknown = 2.0 * prior + mean * mean * per_square
        known = (count >= FEWEST_EXAMPLES) & (variance * count > unknown)
        most = ops.minimum(count, max_deviations**2)
        reach = ops.where(known, ops.sqrt(variance * most), float("inf"))
        return ops.clip(x, mean - reach, mean + reach)
