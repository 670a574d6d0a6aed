"""The inputs of networks for observations, by hand."""

import keras
import numpy as np
import pytest
from gymnasium import spaces

from keras_rl2.networks.task import ObservationEncoder


@pytest.mark.parametrize(
    ("space", "observation", "expected"),
    [
        (spaces.Discrete(3, start=5), [5, 7], [[1, 0, 0], [0, 0, 1]]),
        (
            spaces.MultiDiscrete([2, 3], start=[1, -1]),
            [[1, -1], [2, 1]],
            [[1, 0, 1, 0, 0], [0, 1, 0, 0, 1]],
        ),
        (spaces.MultiBinary(2), [[0, 1]], [[0, 1]]),
        (spaces.Box(-9.0, 9.0, ()), [3.0, -4.0], [[3], [-4]]),
        (spaces.Box(0, 255, (2,), np.uint8), [[1, 200]], [[1, 200]]),
    ],
    ids=repr,
)
def test_numbers(space, observation, expected):
    encode = ObservationEncoder(space)
    given = keras.ops.convert_to_tensor(observation, encode.spec.dtype)
    encoded = encode(given)
    assert encoded.dtype == "float32"
    assert (None, *encoded.shape[1:]) == encode.network_input.shape
    np.testing.assert_array_equal(encoded, expected)


def test_images_stay_bytes():
    encode = ObservationEncoder(spaces.Box(0, 255, (2, 2, 3), np.uint8))
    given = np.arange(12, dtype="uint8").reshape(1, 2, 2, 3)
    encoded = encode(given)
    assert encoded.dtype == encode.network_input.dtype == "uint8"
    np.testing.assert_array_equal(encoded, given)
