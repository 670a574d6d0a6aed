"""Values so far from all others that running statistics do not follow them.

Of a mean and a variance over `n` examples, a value further from the mean than

    k = min(max_deviations, sqrt(n))

standard deviations is replaced by one at that distance. A single value then
multiplies the variance by 1 + k² / n at most, which is 2 where n is below
`max_deviations` squared, and close to 1 later on. A value seen once in n
otherwise equal examples lies sqrt(n) deviations away: rare events are no
outliers, however rare they are. Where all values have moved, each of them lets
the variance grow by that factor, and it reaches them within about
n / k² log(distance²) examples.
"""

import dataclasses

MAX_DEVIATIONS = 100.0
"""How far values may lie from the mean by default, in deviations."""

FEWEST_EXAMPLES = 1000
"""Number of examples before any value can count as an outlier."""


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
