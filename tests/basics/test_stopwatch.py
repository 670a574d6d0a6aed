import pytest

import keras_rl2 as rl
from keras_rl2.basics.stopwatch import Stopwatch
from support.agents import EITHER_KIND
from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import make_env
from support.clocks import Clock


@pytest.fixture
def clock():
    return Clock()


class Cook:
    """Has sections within sections."""

    def __init__(self, clock, stopwatch):
        self.clock = clock
        self.stopwatch = stopwatch

    def dine(self, courses, *, wine=0.0):
        with self.stopwatch.section("dinner"):
            self.clock.now += 1.0
            for _ in range(courses):
                self.boil()
            self.clock.now += wine
            return courses

    def boil(self):
        with self.stopwatch.section("boiling"):
            self.clock.now += 2.0
            if self.clock.now > 100.0:
                raise KeyboardInterrupt


def test_time_goes_to_the_innermost_section(clock):
    stopwatch = Stopwatch(clock)
    clock.now += 5.0
    assert Cook(clock, stopwatch).dine(3, wine=0.5) == 3
    clock.now += 1.0
    assert stopwatch.seconds() == {"rest": 6.0, "dinner": 1.5, "boiling": 6.0}
    # Nothing begins anew.
    clock.now += 1.0
    assert stopwatch.seconds()["rest"] == 7.0


def test_switching_says_what_was_left(clock):
    stopwatch = Stopwatch(clock)
    assert stopwatch.switch("update") == "rest"
    assert stopwatch.switch("update") == "update"
    clock.now += 1.0
    assert stopwatch.seconds() == {"rest": 0.0, "update": 1.0}


def test_a_section_ends_with_an_error_too(clock):
    stopwatch = Stopwatch(clock)
    clock.now = 98.0
    with pytest.raises(KeyboardInterrupt):
        Cook(clock, stopwatch).dine(1)
    clock.now += 5.0
    seconds = {"rest": 98.0 + 5.0, "dinner": 1.0, "boiling": 2.0}
    assert stopwatch.seconds() == seconds


@pytest.mark.rotate(name=EITHER_KIND)
@pytest.mark.parametrize("name", ["PPO", "REINFORCE", "DQN", "SAC"])
def test_each_dataset_tells_what_a_round_is_at(name):
    case = EVERY_AGENT[name]
    env = make_env(case.pair)
    agent, dataset = make_eager_agent(case, env), case.make_dataset(env)
    dataset.bind(agent)
    dataset.refresh()
    assert dataset.stopwatch is None
    dataset.stopwatch = stopwatch = Stopwatch()
    dataset.refresh()
    seconds = stopwatch.seconds()
    assert set(seconds) == {"rest", "preparing", "acting", "environment"}
    assert min(seconds.values()) > 0.0
    # An evaluation on the same environments is none of the round.
    agent.evaluate(rl.EvaluationDataset(dataset.env, 1, seed=0))
    again = stopwatch.seconds()
    assert again.pop("rest") > seconds.pop("rest")
    assert again == seconds
    # The hot loop has nothing between it and the environments otherwise.
    assert dataset._collector.env is not dataset.env
    dataset.stopwatch = None
    dataset.refresh()
    assert dataset._collector.env is dataset.env


def test_a_fit_begins_without_the_stopwatch_of_another():
    rollouts = rl.RolloutDataset(
        "CartPole-v1", horizon=32, passes=1, batch_size=32, seed=0
    )
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    agent.compile(run_eagerly=True)
    rollouts.stopwatch = stopwatch = Stopwatch()
    agent.fit(rollouts, verbose=0)
    assert rollouts.stopwatch is None
    assert set(stopwatch.seconds()) == {"rest"}
