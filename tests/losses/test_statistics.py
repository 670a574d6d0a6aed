import numpy as np
import pytest

from keras_rl2.losses import statistics


def test_weighted_mean():
    values = np.array([1.0, 3.0, 9.0])
    assert float(statistics.weighted_mean(values, np.ones(3))) == 13 / 3
    assert float(statistics.weighted_mean(values, np.array([1.0, 0, 1]))) == 5.0


def test_mean_of_nothing_is_0():
    assert float(statistics.weighted_mean(np.ones(3), np.zeros(3))) == 0.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normalize_equals_numpy(dtype):
    values = np.random.default_rng(0).normal(5, 3, 50).astype(dtype)
    weight = (np.arange(50) < 40).astype("float32")
    normal = statistics.normalize(values, weight).numpy()
    expected = (values - values[:40].mean()) / (values[:40].std() + 1e-8)
    np.testing.assert_allclose(normal, expected, rtol=1e-4)
    assert normal.dtype == dtype


def test_a_single_value_is_left_as_it_is():
    weight = np.array([0.0, 1.0], "float32")
    normal = statistics.normalize(np.array([7.0, 3.0], "float32"), weight)
    assert normal.numpy()[1] == 3.0
    one = statistics.normalize(np.array([3.0], "float32"), np.ones(1))
    np.testing.assert_array_equal(one, [3.0])


def test_equal_values_become_0():
    normal = statistics.normalize(np.full(4, 3.0, "float32"), np.ones(4))
    np.testing.assert_array_equal(normal, np.zeros(4))


def test_nothing_stays_finite():
    values = np.array([1.0, 2.0], "float32")
    normal = statistics.normalize(values, np.zeros(2, "float32"))
    assert np.isfinite(normal.numpy()).all()


@pytest.mark.parametrize("function", ["weighted_mean", "normalize"])
@pytest.mark.parametrize(
    ("values", "weight"), [((3, 1), (3,)), ((3,), (3, 1)), ((3, 1), (3, 1))]
)
def test_shapes_are_never_broadcast(function, values, weight):
    with pytest.raises(ValueError, match=r"Expected.*Received"):
        getattr(statistics, function)(np.ones(values), np.ones(weight))
