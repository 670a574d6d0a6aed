"""Observers: functions that are called on events without effect on them."""

import inspect
import weakref
from collections.abc import Callable
from typing import Generic
from typing import TypeVar

T = TypeVar("T")


class Observers(Generic[T]):
    """Functions that are called with each piece of news.

    An agent calls its observers with each `Trajectory` that it receives.

    A method is removed together with its object: a callback of a `fit` that
    was interrupted leaves nothing behind.

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
        """Adds a function, which is called once for each piece of news.

        Args:
            observer: Callable. Takes the news.
        """
        self.remove(observer)
        self._references.append(
            weakref.WeakMethod(observer)
            if inspect.ismethod(observer)
            # There may be no other reference to a function, e.g. a lambda.
            else lambda: observer
        )

    def remove(self, observer: Callable[[T], object]) -> None:
        """Removes a function, if it was added.

        Args:
            observer: Callable. The argument of `add`.
        """
        self._references = [
            reference
            for reference in self._references
            if reference() not in (None, observer)
        ]

    def __call__(self, news: T) -> None:
        """Calls all observers.

        Args:
            news: The news, e.g. a `Trajectory`.
        """
        for reference in self._references:
            observer = reference()
            if observer is not None:
                observer(news)

    def __len__(self) -> int:
        """Returns the number of observers."""
        return sum(reference() is not None for reference in self._references)
