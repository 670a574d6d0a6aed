import numpy as np
import pytest

from keras_rl2.cli.plot import bootstrap_interval
from keras_rl2.cli.plot import interquartile_mean
from keras_rl2.cli.plot import on_common_steps

NAN = float("nan")


def test_interquartile_mean():
    for values, mean in (
        ([7.0], 7.0),
        ([1.0, 2.0], 1.5),
        # (0.25 * 0 + 1 + 0.25 * 8) / 1.5
        ([8.0, 0.0, 1.0], 2.0),
        ([-1000.0, 1.0, 3.0, 1000.0], 2.0),
        # A quarter of five is 1.25: (0.75 * 1 + 2 + 0.75 * 4) / 2.5
        ([100.0, 1.0, 2.0, 4.0, -100.0], 2.3),
        # The two examples of the encyclopaedia's article.
        ([5.0, 8, 4, 38, 8, 6, 9, 7, 7, 3, 1, 6], 6.5),
        ([1.0, 3, 5, 7, 9, 11, 13, 15, 17], 9.0),
    ):
        assert interquartile_mean(np.array(values)) == pytest.approx(mean)
    # At each step.
    values = np.array([[0.0, 5.0], [1.0, 5.0], [3.0, 5.0], [9.0, 5.0]])
    assert interquartile_mean(values).tolist() == [2.0, 5.0]


class TestBootstrapInterval:
    def test_by_hand(self):
        """A resample of two seeds has the mean 0, 0.5 or 1: 1/4, 1/2, 1/4."""
        values = np.array([[0.0], [1.0]])
        low, high = bootstrap_interval(values)
        assert (low.item(), high.item()) == (0.0, 1.0)


def test_curves_are_compared_at_common_steps():
    steps, values = on_common_steps(
        [
            (np.array([0.0, 10, 20]), np.array([NAN, 1.0, 3.0])),
            (np.array([5.0, 15, 30]), np.array([0.0, 10.0, 10.0])),
        ],
        points=3,
    )
    # From the first return that both know to where the shorter one ends.
    assert steps.tolist() == [10.0, 15.0, 20.0]
    assert values.tolist() == [[1.0, 2.0, 3.0], [5.0, 10.0, 10.0]]
    other = (np.array([0.0, 10.0]), np.array([1.0, 1.0]))
    for curve, said in (
        (([0.0, 1.0], [NAN, NAN]), "no episode has ended"),
        (([], []), "no episode has ended"),
        (([50.0, 60.0], [1.0, 1.0]), "ends at 10, one that begins at 50"),
    ):
        with pytest.raises(ValueError, match=said):
            on_common_steps([other, tuple(map(np.array, curve))])
