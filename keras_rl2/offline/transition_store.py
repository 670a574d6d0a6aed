"""What an offline dataset draws from."""

from collections.abc import Iterator
from typing import Any
from typing import Protocol

import numpy as np

from keras_rl2.collecting.trajectory import Trajectory


class TransitionStore(Protocol):
    """Transitions as an agent takes them, all of them in memory or not."""

    def sample(
        self, generator: np.random.Generator, count: int
    ) -> dict[str, Any]:
        """Draws transitions uniformly, with replacement.

        Args:
            generator: NumPy generator.
            count: int. M.

        Returns:
            dict as of `TransitionBlock.take`.
        """

    def trajectories(self) -> Iterator[Trajectory]:
        """Gives what is held at present, in order of time.

        Yields:
            `Trajectory` of T steps of one environment.
        """

    def get_state(self) -> dict[str, Any]:
        """Returns what later draws depend on beside the generator."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Takes back what `get_state` gave."""
