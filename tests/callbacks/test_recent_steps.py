import numpy as np

from keras_rl2.callbacks.recent_steps import RecentSteps
from support.trajectories import trajectory


def test_steps_are_spread_evenly_over_a_rollout():
    steps = RecentSteps(rows=4)
    steps.take(trajectory(np.arange(22.0).reshape(11, 2, 1)))
    # Of 20 steps, from the first to the last one: 0, 19/3, 38/3, 19.
    observation, action = steps.arrays()
    np.testing.assert_array_equal(observation[:, 0], [0, 6, 12, 19])
    assert action.shape == (4,)


def test_old_steps_are_dropped_and_enough_are_kept():
    steps = RecentSteps(rows=4)
    for index in range(5):
        steps.take(trajectory(np.full((4, 1, 1), float(index))))
    # Three of each: without those of 3 there would be too few.
    np.testing.assert_array_equal(steps.arrays()[0][:, 0], [3, 3, 3, 4, 4, 4])
    assert len(steps) == 6


def test_resets_are_no_steps():
    steps = RecentSteps()
    rewards = [[1.0, -3.0], [99.0, 2.0]]
    valid = [[True, True], [False, True]]
    observation = np.arange(6.0).reshape(3, 2, 1)
    steps.take(trajectory(observation, rewards, valid))
    assert steps.largest_reward == 3.0
    np.testing.assert_array_equal(steps.arrays()[0][:, 0], [0, 1, 3])
    steps.take(trajectory(observation, valid=np.zeros((2, 2), bool)))
    assert len(steps) == 3
