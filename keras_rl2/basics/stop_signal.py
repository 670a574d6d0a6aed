"""Signals that end a training after the present round."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """Records SIGINT and SIGTERM within a `with` statement.

    A second signal, of either kind, has its usual effect at once.

    Attributes:
        received: int or None. The signal; None if there was none.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    @contextlib.contextmanager
    def noticed(self) -> Iterator[None]:
        """Records signals in the main thread, but not ignored ones."""
        self.received = None
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                # It is None if the handler is not of Python.
                if signal.getsignal(number) not in (None, signal.SIG_IGN):
                    self._before[number] = signal.signal(number, self._note)
        try:
            yield
        finally:
            self._restore()

    def leave(self) -> None:
        """Raises `KeyboardInterrupt` or `SystemExit` for a recorded signal."""
        if self.received == signal.SIGINT:
            raise KeyboardInterrupt
        if self.received is not None:
            raise SystemExit(128 + self.received)

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Records a signal, and restores the handlers for the next one."""
        del frame
        self.received = number
        self._restore()

    def _restore(self) -> None:
        """Restores the handlers from before."""
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()
