"""N-step returns around the length of the trajectory, where none ends."""

import numpy as np
import pytest

from keras_rl2 import returns

LENGTH = 4


@pytest.mark.parametrize("n", range(1, LENGTH + 2))
def test_each_window_is_as_long_as_asked_for(n):
    rewards = np.array([[1.0], [2.0], [4.0], [8.0]])
    next_values = np.array([[10.0], [20.0], [40.0], [80.0]])
    actual = returns.n_step_returns(
        rewards, np.full((LENGTH, 1), 0.5), next_values, n
    )
    expected = []
    for t in range(LENGTH):
        window = rewards[t : t + n, 0]
        end = t + len(window)
        expected.append(
            sum(reward * 0.5**k for k, reward in enumerate(window))
            + next_values[end - 1, 0] * 0.5 ** len(window)
        )
    np.testing.assert_allclose(actual[:, 0], expected, rtol=1e-12)
