"""One piece of work at a time, beside training."""

import threading
from collections.abc import Callable


class BackgroundWork:
    """Does one thing in a thread of its own, and keeps what it raised.

    Example:

    >>> work, done = BackgroundWork(), []
    >>> work.start(lambda: done.append(1))
    >>> work.wait()
    >>> done, work.take_error()
    ([1], None)
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def start(self, work: Callable[[], object]) -> None:
        """Begins something, once what was begun before is done.

        Args:
            work: Callable. What is to be done.
        """
        self.wait()

        def done() -> None:
            try:
                work()
            except Exception as error:
                self._error = error

        self._thread = threading.Thread(target=done, name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Waits until it is done."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def take_error(self) -> Exception | None:
        """Returns what was raised, once; None if it is done, or under way."""
        error, self._error = self._error, None
        return error
