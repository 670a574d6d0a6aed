"""Signals are taken note of, once, and left to others afterwards."""

import signal
import threading

import pytest

from keras_rl2.basics.stop_signal import StopSignal

NUMBERS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture
def handled():
    """The user's handlers, which note the signals that they receive."""
    came = []
    before = {
        number: signal.signal(number, lambda number, _: came.append(number))
        for number in NUMBERS
    }
    yield came
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_first_is_noted_the_second_is_not(handled, number):
    handled.clear()
    with (stop := StopSignal()).noticed():
        signal.raise_signal(number)
        assert stop.received == number
        assert handled == []
        signal.raise_signal(number)
    assert handled == [number]
    signal.raise_signal(number)
    assert handled == [number, number]


def test_how_it_ends():
    stop = StopSignal()
    stop.leave()
    stop.received = signal.SIGINT
    with pytest.raises(KeyboardInterrupt):
        stop.leave()
    stop.received = signal.SIGTERM
    with pytest.raises(SystemExit) as ended:
        stop.leave()
    assert ended.value.code == 143


def test_a_new_wait_forgets_earlier_signals(handled):
    stop = StopSignal()

    def fail():
        with stop.noticed():
            signal.raise_signal(signal.SIGINT)
            raise RuntimeError("the power is out")

    with pytest.raises(RuntimeError):
        fail()
    # Handlers are put back after an error too.
    signal.raise_signal(signal.SIGTERM)
    assert handled == [signal.SIGTERM]
    with stop.noticed():
        assert stop.received is None
    # What is ignored stays ignored.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with (stop := StopSignal()).noticed():
        signal.raise_signal(signal.SIGINT)
        assert stop.received is None
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_threads_are_given_none(handled):
    before = [signal.getsignal(number) for number in NUMBERS]
    seen = []

    def look():
        with StopSignal().noticed():
            seen.extend(signal.getsignal(number) for number in NUMBERS)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == before
