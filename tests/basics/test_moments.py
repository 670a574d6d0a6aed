"""Running moments, and the bound that keeps outliers out of them."""

import keras
import numpy as np
import pytest

from keras_rl2.basics.moments import Moments
from support.golden import load_cases


def merged(moments, batch):
    return moments.merged(batch.mean(axis=0), batch.var(axis=0), len(batch))


def test_moments_equal_published_ones():
    (case,) = (x for x in load_cases() if x["id"] == "running_mean_std/sb3")
    moments = Moments(np.zeros(2), np.ones(2), case["inputs"]["epsilon"])
    for batch in case["inputs"]["batches"]:
        moments = merged(moments, np.array(batch))
    for found, name in zip(moments, ("mean", "var", "count"), strict=True):
        np.testing.assert_allclose(
            found, case["expected"][name], **case["tolerance"]
        )


def test_moments_do_not_depend_on_the_batches():
    data = np.random.default_rng(0).normal(3.0, 2.0, (60, 2))
    whole = parts = Moments(np.zeros(2), np.ones(2), 1e-4)
    whole = merged(whole, data)
    for part in np.split(data, [1, 2, 20, 59]):
        parts = merged(parts, part)
    np.testing.assert_allclose(whole.mean, parts.mean, rtol=1e-12)
    np.testing.assert_allclose(whole.variance, parts.variance, rtol=1e-12)
    # The prior weighs 1e-4 of an example.
    np.testing.assert_allclose(whole.mean, data.mean(0), rtol=1e-5)


@pytest.mark.parametrize("ops", [np, keras.ops], ids=["numpy", "keras"])
def test_each_number_of_an_example_is_bounded(ops):
    """The last of them was constant, so that its scale is unknown."""
    x = np.random.default_rng(0).normal([5, -3, 0], [1, 2, 0], (20_000, 3))
    moments = merged(Moments(np.zeros(3), np.ones(3), 1e-4), x)
    moments = Moments(*(ops.array(each, "float64") for each in moments))
    far = np.array([[1e8, -3.0, 1e8], [5.0, -1e8, 7.0]])
    bounded = moments.bounded(far, 100.0, ops, prior=1e-4)
    np.testing.assert_allclose(
        bounded, [[105, -3, 1e8], [5, -203, 7]], rtol=0.01
    )
    ordinary = moments.bounded(x, 100.0, ops, prior=1e-4)
    np.testing.assert_array_equal(ordinary, x)
    np.testing.assert_array_equal(moments.bounded(far, None, ops), far)
