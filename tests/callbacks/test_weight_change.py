import numpy as np
import pytest

from keras_rl2.callbacks.weight_change import relative_change


def test_the_change_is_relative_to_all_weights_together():
    # The weights are (3, 0, 4), of norm 5; the change (0.3, 0.4, 0).
    before = [np.array([[3.0, 0.0]]), np.array([4.0])]
    after = [np.array([[3.3, 0.4]]), np.array([4.0])]
    assert relative_change(before, after) == pytest.approx(0.1)
    assert relative_change(before, before) == 0.0


def test_weights_of_nought_have_no_relative_change_of_nan():
    assert relative_change([np.zeros(2)], [np.zeros(2)]) == 0.0
