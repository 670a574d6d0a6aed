"""Interface of rounds in the graph for the train function."""

from collections.abc import Mapping
from typing import Any
from typing import Protocol

import numpy as np
import tensorflow as tf

from keras_rl2.basics.shapes import Tensor


class RoundMaker(Protocol):
    """Makes the rounds of an agent within its train function.

    The dataset returns the inputs of K rounds, and the train function makes
    these rounds in one call.
    """

    def __call__(
        self,
        inputs: Mapping[str, Any],
        carried: Mapping[str, Any],
        from_trajectory: bool,
    ) -> tuple[dict[str, Any], dict[str, Tensor], dict[str, Any]]:
        """Makes a round, in the graph.

        Args:
            inputs: Mapping of tensors, of this round.
            carried: Mapping of tensors that rounds pass on to each other.
            from_trajectory: bool. Whether the update takes the rollout itself.

        Returns:
            The round; see `data.round_dataset.minibatch`, with `usable`, a
            scalar bool: whether all numbers are finite, so that the updates
            may be made. Then the report; see `receive`. Then `carried` for
            the next round.
        """

    def receive(self, reports: dict[str, np.ndarray]) -> None:
        """Receives the reports of K rounds, once the graph has made them.

        Args:
            reports: dict of float64 arrays `[K, ...]`.

        Raises:
            ValueError: If an observation or reward is not finite. No weight
                has been changed by that round, and none was made after it.
        """

    def settings(self) -> tuple[Any, ...]:
        """Returns the numbers and functions that the graph is made of."""

    def variables(self) -> list[tf.Variable]:
        """Returns the variables of the environments, in a fixed order."""
