"""Being asked to stop by the system, and stopping when it is convenient."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignal:
    """Takes note of SIGINT and SIGTERM while it is entered.

    A second signal, of either kind, does at once what it would have done
    without.

    Attributes:
        received: int or None. The signal; None if there was none.

    Example:

    >>> with (stop := StopSignal()).noticed():
    ...     signal.raise_signal(signal.SIGTERM)
    >>> stop.received == signal.SIGTERM
    True
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    @contextlib.contextmanager
    def noticed(self) -> Iterator[None]:
        """Takes note of signals within a `with` statement.

        Only in the main thread: no other is given any. One that is ignored, as
        SIGINT is in the background of a shell script, stays ignored.
        """
        self.received = None
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                # None where it is handled, but not in Python.
                if signal.getsignal(number) not in (None, signal.SIG_IGN):
                    self._before[number] = signal.signal(number, self._note)
        try:
            yield
        finally:
            self._restore()

    def leave(self) -> None:
        """Ends as the signal would have had the process end.

        Raises:
            KeyboardInterrupt: If it was SIGINT, which Python ends with 130.
            SystemExit: If it was SIGTERM, with 128 + 15.
        """
        if self.received == signal.SIGINT:
            raise KeyboardInterrupt
        if self.received is not None:
            raise SystemExit(128 + self.received)

    def _note(self, number: int, frame: FrameType | None) -> None:
        """Remembers a signal; the next one is not for us."""
        del frame
        self.received = number
        self._restore()

    def _restore(self) -> None:
        """Leaves signals to whom they were left before."""
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()
