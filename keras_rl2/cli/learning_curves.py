"""Statistics of learning curves over seeds: pure functions of NumPy.

Letters: S is the number of seeds, N of points on a curve.
"""

from collections.abc import Sequence

import numpy as np


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """Averages the middle half of the seeds.

    A quarter of the seeds at either end is left out, by parts where their
    number is not a multiple of four: one lucky or lost seed does not decide,
    and fewer seeds than for a median will do.

    Args:
        values: `[S, ...]` float. One row for each seed.

    Returns:
        `[...]` float64: sum(w x) / (S / 2) over the sorted x, where w is the
        share of the i-th value that lies within S/4 ... 3S/4.

    Raises:
        ValueError: If there is no seed.

    Example:

    >>> float(interquartile_mean(np.array([100.0, 1.0, 3.0, -50.0])))
    2.0

    Reference:
        [Agarwal et al., 2021](https://arxiv.org/abs/2108.13264), section 4.3.
    """
    seeds = len(values)
    if seeds < 1:
        raise ValueError("Expected at least one seed. Received: none")
    first = np.arange(seeds)
    inside = np.minimum(first + 1, 0.75 * seeds) - np.maximum(
        first, 0.25 * seeds
    )
    weight = np.clip(inside, 0.0, None)
    total = np.tensordot(weight, np.sort(values, axis=0), axes=1)
    return total / (0.5 * seeds)


def bootstrap_interval(
    values: np.ndarray,
    confidence: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns a bootstrap confidence interval of the interquartile mean.

    Whole curves are drawn with replacement, as many as there are, and the
    quantiles of their interquartile means are taken.

    Args:
        values: `[S, ...]` float. One row for each seed.
        confidence: float. Share of the resamples within the interval.
            Defaults to `0.95`.
        resamples: int. How often seeds are drawn. Defaults to `1000`.
        seed: int. Seeds the drawing. Defaults to `0`.

    Returns:
        tuple of `[...]` float64: lower and upper end.

    Raises:
        ValueError: If `confidence` is not between 0 and 1.

    Example:

    >>> low, high = bootstrap_interval(np.array([[1.0], [1.0], [1.0]]))
    >>> float(low[0]), float(high[0])
    (1.0, 1.0)
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(
            "Expected `confidence` to be between 0 and 1. "
            f"Received: confidence={confidence}"
        )
    generator = np.random.default_rng(seed)
    rows = generator.integers(len(values), size=(resamples, len(values)))
    means = np.stack([interquartile_mean(values[each]) for each in rows])
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, [tail, 1.0 - tail], axis=0)
    return low, high


def on_common_steps(
    curves: Sequence[tuple[np.ndarray, np.ndarray]], points: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """Interpolates curves on the steps that all of them have reached.

    Args:
        curves: Sequence of `(steps [N], values [N])`, steps increasing. NaN
            values (no episode had ended) are left out.
        points: int. Points of the result. Defaults to `200`.

    Returns:
        tuple: steps `[points]` float64, values `[S, points]` float64.

    Raises:
        ValueError: If a curve has no value, or they have no steps in common.

    Example:

    >>> steps, values = on_common_steps(
    ...     [(np.array([0, 10]), np.array([0.0, 1.0])),
    ...      (np.array([5, 20]), np.array([2.0, 2.0]))], points=2)
    >>> steps.tolist(), values.tolist()
    ([5.0, 10.0], [[0.5, 1.0], [2.0, 2.0]])
    """
    known = [
        (steps[np.isfinite(values)], values[np.isfinite(values)])
        for steps, values in curves
    ]
    if not known or any(len(steps) == 0 for steps, _ in known):
        raise ValueError(
            "Expected curves with at least one return each. Received: one "
            "without, from a training in which no episode has ended"
        )
    first = max(steps[0] for steps, _ in known)
    last = min(steps[-1] for steps, _ in known)
    if first > last:
        raise ValueError(
            "Expected curves that have steps in common. Received: one that "
            f"ends at {last:.0f}, one that begins at {first:.0f}"
        )
    grid = np.linspace(first, last, points)
    return grid, np.stack([np.interp(grid, *curve) for curve in known])
