"""A clock that adds up the time of each section of a training."""

import time
from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up the seconds that go into each section of a training.

    At any moment it is in one section; entering one leaves another, so that
    together they make up all of the time. Several may read the same one.

    A dataset with a stopwatch enters its own sections while a round is made:
    `"preparing"`, within it `"acting"`, and within that `"environment"`.

    Args:
        clock: Callable. Returns the time in seconds. Defaults to
            `time.perf_counter`.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._section = "rest"
        self._since = clock()
        self._seconds: dict[str, float] = {}

    def switch(self, section: str) -> str:
        """Enters a section, and returns the one that was left."""
        now = self._clock()
        left = self._section
        self._seconds[left] = self._seconds.get(left, 0.0) + now - self._since
        self._section, self._since = section, now
        return left

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Stays in a section while a `with` block runs."""
        left = self.switch(name)
        try:
            yield
        finally:
            self.switch(left)

    def seconds(self) -> dict[str, float]:
        """Returns the seconds of each section that was ever entered."""
        self.switch(self._section)
        return dict(self._seconds)
