import numpy as np
import pytest

from keras_rl2 import losses
from support.gradients import gradient


@pytest.mark.parametrize(
    ("value", "loss", "slope"),
    [(0.1, 0.81, -1.8), (0.5, 0.64, 0.0), (3.0, 4.0, 4.0), (-0.5, 2.25, -3.0)],
)
def test_clipped_value_by_hand(value, loss, slope):
    def function(value):
        return losses.clipped_value(value, [0.0], [1.0], 0.2)

    np.testing.assert_allclose(function([value]), [loss], rtol=1e-6)
    np.testing.assert_allclose(gradient(function, [value]), [slope], rtol=1e-6)


def test_huber_has_unit_slope_beyond_delta():
    error = [-5.0, -0.5, 0.0, 0.5, 5.0]
    np.testing.assert_allclose(
        gradient(lambda e: losses.huber(e, 2.0), error),
        [-2.0, -0.5, 0.0, 0.5, 2.0],
    )


def test_expectile_of_one_half_is_half_the_square():
    error = np.linspace(-2.0, 2.0, 9)
    np.testing.assert_allclose(losses.expectile(error, 0.5), 0.5 * error**2)


def test_expectile_is_fitted():
    rng = np.random.default_rng(0)
    targets = rng.standard_normal(20_000)
    grid = np.linspace(-2.0, 2.0, 401)
    loss = [np.mean(losses.expectile(targets - m, 0.9)) for m in grid]
    # The 0.9 expectile of the standard normal distribution.
    assert abs(grid[np.argmin(loss)] - 0.8616) < 0.03
