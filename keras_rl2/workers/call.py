"""A call of a worker's method."""

import dataclasses
import math
from typing import Any

from keras_rl2.workers.transport import Link


# Equal if it is the same, as calls are.
@dataclasses.dataclass(eq=False)
class Shared:
    """What is known to all worker processes.

    Attributes:
        value: What `Transport.share` returned.
        calls: int. Calls it was given to that are not over.
        forgotten: bool. Whether no other call will be given it.
    """

    value: Any
    calls: int = 0
    forgotten: bool = False


# Equal if it is the same: arrays in it could not be compared.
@dataclasses.dataclass(eq=False)
class Call:
    """A call of a worker's method, under way or answered.

    Attributes:
        index: int. Which worker.
        method: str. What is called.
        arguments: tuple. What it is given.
        repeatable: bool. Whether another worker may do it in the place of one
            that was lost.
        seconds: float or None. How long it may take once it has begun.
        since: float. When it began, as far as is known.
        link: `Link` or None. Who has answered it.
        answer: What it returned.
        error: Exception or None. What it raised.
        done: bool. Whether it has been answered.
        dropped: bool. Whether nobody wants the answer any more.
        own: bool. Whether it is the pool's own, which nobody waits for.
        token: What the answer is released by.
    """

    index: int
    method: str
    arguments: tuple[Any, ...]
    repeatable: bool
    seconds: float | None
    since: float = 0.0
    link: Link | None = None
    answer: Any = None
    error: BaseException | None = None
    done: bool = False
    dropped: bool = False
    own: bool = False
    token: Any = None

    @property
    def shared(self) -> list[Shared]:
        """What it is given of what is known to all."""
        return [each for each in self.arguments if isinstance(each, Shared)]

    def sent_arguments(self) -> list[Any]:
        """Returns what it is given, as transports know it."""
        return [
            each.value if isinstance(each, Shared) else each
            for each in self.arguments
        ]

    @property
    def deadline(self) -> float:
        """When it takes too long, on the clock of `since`."""
        return math.inf if self.seconds is None else self.since + self.seconds
