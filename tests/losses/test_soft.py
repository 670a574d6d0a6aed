import numpy as np
import pytest

from keras_rl2 import losses
from support.gradients import gradient


def test_soft_value_by_hand():
    value = losses.soft_value([-2.0, 1.0], [[3.0, 1.0], [2.0, 5.0]], 0.5)
    np.testing.assert_allclose(value, [2.0 + 1.0, 1.0 - 0.5])


def test_expected_soft_value_by_hand():
    log_probs = np.log([[0.25, 0.75]])
    value = losses.expected_soft_value(
        log_probs, [[[4.0, 8.0]], [[6.0, 0.0]]], 2.0
    )
    entropy = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    np.testing.assert_allclose(value, [0.25 * 4.0 + 2.0 * entropy])


def test_temperature_loss_rises_with_too_little_entropy():
    def function(log_temperature):
        return losses.temperature_loss(log_temperature, [-3.0, 1.0], -1.0)

    np.testing.assert_allclose(function(2.0), [-4.0, 4.0])
    # Descent makes the temperature grow where entropy is below the target.
    np.testing.assert_allclose(gradient(function, 2.0), -2.0 + 2.0)
    lacking = gradient(lambda x: losses.temperature_loss(x, [-3.0], -1.0), 2.0)
    np.testing.assert_allclose(lacking, -2.0)


def test_a_target_entropy_of_another_shape_is_refused():
    assert losses.temperature_loss(1.0, [2.0, 3.0], [1.0, 1.0]).shape == (2,)
    with pytest.raises(ValueError, match="target_entropy"):
        losses.temperature_loss(1.0, [2.0, 3.0], [[1.0], [1.0]])
