"""Values so far from all others that running statistics do not follow them.

Of a mean and a variance over `n` examples, a value further from the mean than

    k = min(max_deviations, sqrt(n))

standard deviations is taken for one at that distance. So a single value
multiplies the variance by 1 + k² / n at most, which is 2 where n is below
`max_deviations` squared, and next to 1 later on. A value seen once in n
examples that are else alike lies sqrt(n) deviations away: rare events are no
outliers, be they ever so rare. Where all values have moved, each of them lets
the variance grow by that factor, and it reaches them within some
n / k² log(distance²) examples.
"""

MAX_DEVIATIONS = 100.0
"""How far values may lie from the mean by default, in deviations."""

FEWEST_EXAMPLES = 1000
"""Examples before which nothing is told an outlier."""


class Outliers:
    """How many outliers there were, and which was the newest.

    Attributes:
        count: int. Outliers since the training began.
        newest: str. The newest of them, for people; empty before the first
            in this process.
    """

    def __init__(self) -> None:
        self.count = 0
        self.newest = ""

    def add(self, count: int, newest: str) -> None:
        """Counts more of them.

        Args:
            count: int. How many.
            newest: str. The value, and where it came from.
        """
        self.count += count
        self.newest = newest
