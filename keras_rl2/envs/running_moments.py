"""Running mean and variance, which outliers do not move."""

from typing import Any

import numpy as np

from keras_rl2.basics.outliers import FEWEST_EXAMPLES
from keras_rl2.basics.outliers import MAX_DEVIATIONS


class RunningMoments:
    """Mean and variance of a stream of batches, in float64.

    Moments of two sets are merged exactly, so that the order and the size of
    the batches do not matter:

        δ = μ_b - μ
        μ ← μ + δ n_b / (n + n_b)
        σ² ← (n σ² + n_b σ_b² + δ² n n_b / (n + n_b)) / (n + n_b)

    The stream starts as if `epsilon` examples with mean 0 and variance 1 had
    been seen, which keeps the variance positive.

    Args:
        shape: `tuple`. Shape of one example. Defaults to `()`, a number.
        epsilon: float. Weight of the prior, in examples. Defaults to `1e-4`.

    Example:

    >>> moments = RunningMoments()
    >>> moments.update(np.array([1.0, 2.0, 3.0]))
    >>> round(float(moments.mean), 3), round(float(moments.variance), 3)
    (2.0, 0.667)

    Reference:
        - [Chan, Golub and LeVeque, 1979](
          http://i.stanford.edu/pub/cstr/reports/cs/tr/79/773/CS-TR-79-773.pdf)
    """

    def __init__(
        self, shape: tuple[int, ...] = (), epsilon: float = 1e-4
    ) -> None:
        self.mean: Any = np.zeros(shape)
        self.variance: Any = np.ones(shape)
        self.count: Any = float(epsilon)
        self._prior = float(epsilon)

    def update(self, batch: np.ndarray) -> None:
        """Includes a batch in the moments.

        Args:
            batch: `[N, ...]` examples.

        Raises:
            ValueError: If the examples have another shape, or the moments
                would not be finite; then they stay as they were.
        """
        batch = np.asarray(batch, np.float64)
        shape = np.shape(self.mean)
        if batch.shape[1:] != shape or batch.ndim == 0:
            raise ValueError(
                f"Expected a batch of examples of shape {shape}. Received: "
                f"batch of shape {batch.shape}"
            )
        if not len(batch):
            return
        before = self.mean, self.variance, self.count
        with np.errstate(over="ignore", invalid="ignore"):
            self.merge(batch.mean(axis=0), batch.var(axis=0), len(batch))
        if not self.is_finite:
            self.mean, self.variance, self.count = before
            raise ValueError(
                "Expected examples that are finite, and so are their squares. "
                f"Received: a batch from {batch.min()} to {batch.max()}"
            )

    @property
    def is_finite(self) -> bool:
        """Whether mean and variance are finite."""
        return bool(
            np.isfinite(self.mean).all() and np.isfinite(self.variance).all()
        )

    def merge(
        self, mean: np.ndarray, variance: np.ndarray, count: float
    ) -> None:
        """Includes the moments of other examples, unchecked.

        Args:
            mean: Their mean, of the shape of one example.
            variance: Their variance, divided by N rather than N - 1.
            count: float. Their number, above 0.
        """
        total = self.count + count
        delta = mean - self.mean
        self.mean = self.mean + delta * (count / total)
        squares = self.variance * self.count + variance * count
        squares = squares + delta * delta * (self.count * count / total)
        self.variance = squares / total
        self.count = total

    def bounded(
        self,
        batch: np.ndarray,
        max_deviations: float | None = MAX_DEVIATIONS,
    ) -> np.ndarray:
        """Returns examples without outliers, for `update` or `merge`.

        Args:
            batch: `[N, ...]` examples.
            max_deviations: float or None. Largest distance from the mean, in
                standard deviations; at most the square root of the number of
                examples so far. None for no limit. Defaults to `100.0`.

        Returns:
            `[N, ...]`. Examples further away are moved to that distance, except
            before 1000 examples, or if all of them were equal.

        Example:

        >>> moments = RunningMoments()
        >>> moments.update(np.resize([-1.0, 1.0], 10_000))
        >>> moments.bounded(np.array([50.0, 1e6])).round(3).tolist()
        [50.0, 100.0]
        """
        if max_deviations is None:
            return batch
        most = np.minimum(self.count, max_deviations**2)
        known = (self.count >= FEWEST_EXAMPLES) & (
            self.variance * self.count > self.of_prior(self.mean)
        )
        reach = np.where(known, np.sqrt(self.variance * most), np.inf)
        return np.clip(batch, self.mean - reach, self.mean + reach)

    def of_prior(self, mean: Any) -> Any:
        """Returns the squares that the prior adds to equal examples.

        No more than these is no scale.

        Args:
            mean: Mean of the examples, of the shape of one.

        Returns:
            Array of the same shape.
        """
        return 2.0 * self._prior * (1.0 + mean * mean)

    def get_state(self) -> dict[str, Any]:
        """Returns the moments as plain arrays and numbers.

        Returns:
            A dictionary with `mean`, `variance` and `count`.
        """
        return {
            "mean": np.array(self.mean),
            "variance": np.array(self.variance),
            "count": self.count,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores a state.

        Args:
            state: dict, as returned by `get_state`.

        Raises:
            ValueError: If it belongs to examples of another shape.
        """
        mean = np.array(state["mean"], np.float64)
        if mean.shape != np.shape(self.mean):
            raise ValueError(
                f"Expected moments of shape {np.shape(self.mean)}. "
                f"Received: a mean of shape {mean.shape}"
            )
        self.mean = mean
        self.variance = np.array(state["variance"], np.float64)
        self.count = float(state["count"])
