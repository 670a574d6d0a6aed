"""The interface of functions that change drawn minibatches."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Protocol
from typing import TypeAlias

import numpy as np

from keras_rl2.basics import arguments


class StoredSteps(Protocol):
    """The stored steps that a minibatch was drawn from, to be read only.

    A transform of a dataset takes a minibatch and these steps, and returns the
    changed minibatch. A step of environment b at time t has the number t * B +
    b, so that the next step of its episode is B further; recorded steps are
    numbered one after the other, as those of one environment.

    Attributes:
        generator: `np.random.Generator`. The generator of the draws, whose
            state a checkpoint holds.
        gamma: float. Discount factor.
        n_step: int. Rewards of a transition, at most.
        num_envs: int. Environments, B.

    Example:

    >>> def with_noise(batch, steps):
    ...     noise = steps.generator.normal(size=batch["reward"].shape)
    ...     return {**batch, "reward": batch["reward"] + 0.1 * noise}
    >>> import keras_rl2 as rl
    >>> replay = rl.ReplayDataset("CartPole-v1", transform=[with_noise])
    """

    gamma: float
    n_step: int
    num_envs: int

    @property
    def generator(self) -> np.random.Generator:
        """Random generator of the draws."""

    def episode_of(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns the episodes of steps, as far as they are stored.

        Args:
            index: `[M]` ints. Numbers of stored steps, such as `index` of a
                minibatch.

        Returns:
            `[M]` int64 each: the number of the first stored step of the
            episode, and of the last one. If the episode is in progress, the
            last one is the newest.
        """

    def reached(self, index: np.ndarray) -> Any:
        """Returns the observations that steps led to.

        Args:
            index: `[M]` ints. Numbers of stored steps.

        Returns:
            tree of `[M, ...]`, copied. For the last step of an episode, this
            is its last observation.
        """


#: A function that changes drawn minibatches, dicts of `[M, ...]` with the
#: numbers of their steps as `index`.
Transform: TypeAlias = Callable[[dict[str, Any], StoredSteps], dict[str, Any]]


def check_transforms(transform: Sequence[Transform]) -> None:
    """Raises unless an argument is a sequence of functions."""
    arguments.check_known(
        lambda given: all(map(callable, given)),
        "a sequence of functions",
        transform=transform,
    )
