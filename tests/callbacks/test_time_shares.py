import pytest

from keras_rl2.basics.stopwatch import Stopwatch
from keras_rl2.callbacks.time_shares import TimeShares
from support.clocks import Clock


def shares(**seconds):
    total = sum(seconds.values())
    every = dict.fromkeys(TimeShares.SECTIONS, 0.0) | seconds
    return pytest.approx({key: each / total for key, each in every.items()})


def test_shares_are_those_since_the_last_ones():
    clock = Clock()
    stopwatch = Stopwatch(clock)
    # What was before does not count.
    clock.now += 100.0
    split = TimeShares(stopwatch)
    for section, seconds in [("preparing", 1.0), ("update", 4.0)]:
        with stopwatch.section(section):
            clock.now += seconds
    clock.now += 3.0
    assert split.take() == shares(preparing=1.0, update=4.0, rest=3.0)
    clock.now += 1.0
    assert split.take() == shares(rest=1.0)


def test_two_may_read_the_same_stopwatch():
    clock = Clock()
    stopwatch = Stopwatch(clock)
    often, seldom = TimeShares(stopwatch), TimeShares(stopwatch)
    for section in ("acting", "environment"):
        stopwatch.switch(section)
        clock.now += 2.0
        assert often.take() == shares(**{section: 2.0})
    assert seldom.take() == shares(acting=2.0, environment=2.0)


def test_no_time_has_no_shares():
    assert set(TimeShares(Stopwatch(Clock())).take().values()) == {0.0}
