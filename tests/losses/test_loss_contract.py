import numpy as np
import pytest
import tensorflow as tf

from keras_rl2 import losses

PAIRS = {
    "policy_gradient": lambda a, b: losses.policy_gradient(a, b),
    "clipped_surrogate": lambda a, b: losses.clipped_surrogate(a, b, a, 0.2),
    "clipped_value": lambda a, b: losses.clipped_value(a, a, b, 0.2),
    "approximate_kl": lambda a, b: losses.approximate_kl(a, b),
    "clip_fraction": lambda a, b: losses.clip_fraction(a, b, 0.2),
}


@pytest.mark.parametrize("name", PAIRS)
def test_column_beside_flat_is_refused(name):
    flat, column = np.ones(4), np.ones((4, 1))
    for arrays in ((flat, column), (column, flat)):
        with pytest.raises(ValueError, match="squeeze the last axis"):
            PAIRS[name](*arrays)
    with pytest.raises(ValueError, match="Expected rank 1"):
        PAIRS[name](column, column)
    with pytest.raises(ValueError, match="Expected equal shapes"):
        PAIRS[name](flat, np.ones(3))


@pytest.mark.parametrize("name", PAIRS)
def test_per_example_and_precision(name):
    for dtype, expected in (
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float64", "float64"),
    ):
        arrays = [tf.cast([-0.5, -1.0, -2.0], dtype)] * 2
        result = PAIRS[name](*arrays)
        assert result.shape == (3,)
        assert result.dtype == expected


def test_clip_ratio_may_be_a_tensor():
    log_prob, old = [0.3, -0.3], [0.0, 0.0]
    for function in (
        lambda clip: losses.clipped_surrogate(log_prob, old, [1.0, 1.0], clip),
        lambda clip: losses.clipped_value(log_prob, old, [1.0, 1.0], clip),
        lambda clip: losses.clip_fraction(log_prob, old, clip),
    ):
        np.testing.assert_array_equal(function(0.2), function(tf.constant(0.2)))
        with pytest.raises(ValueError, match="Expected rank 0"):
            function(np.array([0.2, 0.2]))
