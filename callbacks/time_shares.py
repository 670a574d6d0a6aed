"""What the time of a training goes into."""

from keras_rl2.basics.stopwatch import Stopwatch


class TimeShares:
    """Tells what the time of a training goes into.

    They add up to 1.

    Args:
        stopwatch: `Stopwatch`. Only read: others may read it too.
    """

    SECTIONS = ("environment", "acting", "preparing", "update", "rest")

    def __init__(self, stopwatch: Stopwatch) -> None:
        self._stopwatch = stopwatch
        self._before = stopwatch.seconds()

    def take(self) -> dict[str, float]:
        """Returns the shares since the last call, or since it was made."""
        now = self._stopwatch.seconds()
        seconds = {
            section: now.get(section, 0.0) - self._before.get(section, 0.0)
            for section in self.SECTIONS
        }
        self._before = now
        total = max(sum(seconds.values()), 1e-9)
        return {section: each / total for section, each in seconds.items()}
