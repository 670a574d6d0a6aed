import itertools

import pytest

import keras_rl2 as rl
from keras_rl2.basics.stopwatch import Stopwatch
from support.agents import EITHER_DATASET
from support.agents import EVERY_AGENT
from support.agents import make_eager_agent
from support.agents import make_env
from support.clocks import Clock


@pytest.fixture
def clock():
    return Clock()


def test_time_goes_to_the_innermost_section(clock):
    stopwatch = Stopwatch(clock)
    clock.now += 5.0
    with stopwatch.section("dinner"):
        clock.now += 1.0
        for _ in range(3):
            with stopwatch.section("boiling"):
                clock.now += 2.0
        clock.now += 0.5
    clock.now += 1.0
    assert stopwatch.seconds() == {"rest": 6.0, "dinner": 1.5, "boiling": 6.0}
    # Nothing begins anew.
    clock.now += 1.0
    assert stopwatch.seconds()["rest"] == 7.0


def test_switching_returns_the_section_left(clock):
    stopwatch = Stopwatch(clock)
    assert stopwatch.switch("update") == "rest"
    assert stopwatch.switch("update") == "update"
    clock.now += 1.0
    assert stopwatch.seconds() == {"rest": 0.0, "update": 1.0}


def test_a_section_ends_with_an_error_too(clock):
    stopwatch = Stopwatch(clock)

    @stopwatch.section("dinner")
    def fail():
        clock.now += 1.0
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    clock.now += 5.0
    assert stopwatch.seconds() == {"rest": 5.0, "dinner": 1.0}


@pytest.mark.parametrize("name", EITHER_DATASET)
def test_a_dataset_times_the_parts_of_a_round(name):
    case = EVERY_AGENT[name]
    env = make_env(case.pair)
    agent, dataset = make_eager_agent(case, env), case.make_dataset(env)
    dataset.bind(agent)
    dataset.refresh()
    assert dataset.stopwatch is None
    # A second later whenever it is looked at.
    ticking = itertools.count(0.0).__next__
    dataset.stopwatch = stopwatch = Stopwatch(ticking)
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
    assert dataset.source.collector.env is not dataset.env
    dataset.stopwatch = None
    dataset.refresh()
    assert dataset.source.collector.env is dataset.env


@pytest.mark.usefixtures("eagerly")
def test_a_fit_begins_without_the_stopwatch_of_another():
    rollouts = rl.RolloutDataset(
        "CartPole-v1", horizon=32, passes=1, batch_size=32, seed=0
    )
    agent = rl.PPO.for_env("CartPole-v1", hidden=(8,), seed=0)
    rollouts.stopwatch = stopwatch = Stopwatch()
    agent.fit(rollouts, verbose=0)
    assert rollouts.stopwatch is None
    assert set(stopwatch.seconds()) == {"rest"}
