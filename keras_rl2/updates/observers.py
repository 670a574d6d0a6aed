"""Functions that are told of what happens, and change nothing in it."""

import inspect
import weakref
from collections.abc import Callable
from typing import Generic
from typing import TypeVar

T = TypeVar("T")


class Observers(Generic[T]):
    """Those who are told of something each time that it happens.

    An agent tells its observers of each `Trajectory` that it is given.

    A method is forgotten with the object that it is of: a callback of a `fit`
    that was interrupted leaves nothing behind.

    Example:

    >>> import keras_rl2 as rl
    >>> rollouts = rl.RolloutDataset("CartPole-v1", horizon=64, seed=0)
    >>> agent = rl.PPO.for_env("CartPole-v1", seed=0)
    >>> agent.observers.add(lambda trajectory: print(trajectory.reward.shape))
    >>> rollouts.bind(agent)
    >>> rollouts.refresh()
    (64, 1)
    """

    def __init__(self) -> None:
        self._references: list[Callable[[], Callable[[T], object] | None]] = []

    def add(self, observer: Callable[[T], object]) -> None:
        """Tells a function from now on, once each time.

        Args:
            observer: Callable. Takes what there is to tell.
        """
        self.remove(observer)
        self._references.append(
            weakref.WeakMethod(observer)
            if inspect.ismethod(observer)
            # Nobody else may hold a function: a lambda, say.
            else lambda: observer
        )

    def remove(self, observer: Callable[[T], object]) -> None:
        """Tells a function nothing any more, if it was told anything.

        Args:
            observer: Callable. What was given to `add`.
        """
        self._references = [
            reference
            for reference in self._references
            if reference() not in (None, observer)
        ]

    def __call__(self, news: T) -> None:
        """Tells all of them.

        Args:
            news: What there is to tell.
        """
        for reference in self._references:
            observer = reference()
            if observer is not None:
                observer(news)

    def __len__(self) -> int:
        """Returns how many are told."""
        return sum(reference() is not None for reference in self._references)
