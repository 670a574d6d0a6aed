"""The count of values that running statistics do not follow."""

import dataclasses


@dataclasses.dataclass
class Outliers:
    """The number of outliers, and the newest of them.

    Attributes:
        count: int. Outliers since the training began.
        newest: str. Description of the newest; empty before the first in this
            process.
    """

    count: int = 0
    newest: str = ""

    def add(self, count: int, newest: str) -> None:
        """Counts further outliers."""
        self.count += count
        self.newest = newest
