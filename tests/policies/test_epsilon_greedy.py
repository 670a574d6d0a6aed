"""The probability of a random action over a training."""

import keras
import pytest

from keras_rl2.policies.epsilon_greedy import EpsilonGreedy

SCHEDULES = [
    keras.optimizers.schedules.CosineDecay(
        0.1, 500, warmup_target=1.0, warmup_steps=100
    ),
    keras.optimizers.schedules.PiecewiseConstantDecay(
        [100, 300], [1.0, 0.5, 0.0]
    ),
]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
def test_a_schedule_is_followed_in_rounds_of_any_length(schedule):
    exploring = EpsilonGreedy(schedule)
    # Rounds of 10 steps, of 1, a step back as after loading, and of 7.
    counts = [*range(0, 400, 10), *range(391, 420), 50, *range(57, 400, 7)]
    for count in counts:
        # Twice: for the noise, and for the logs.
        assert exploring.present(count) == float(schedule(count))
        assert exploring.present(count) == float(schedule(count))


class Steered(keras.optimizers.schedules.LearningRateSchedule):
    """A schedule that a callback steers."""

    def __init__(self):
        self.level = keras.Variable(1.0)

    def __call__(self, step):
        return keras.ops.convert_to_tensor(self.level)


def test_a_custom_schedule_may_depend_on_more_than_the_count():
    schedule = Steered()
    exploring = EpsilonGreedy(schedule)
    assert [exploring.present(count) for count in (0, 10)] == [1.0, 1.0]
    schedule.level.assign(0.25)
    assert [exploring.present(count) for count in (20, 30)] == [0.25, 0.25]
