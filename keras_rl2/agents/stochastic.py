"""What is asked of an agent whose actions have probabilities."""

from typing import Any
from typing import Protocol
from typing import runtime_checkable

from keras_rl2.distributions import Distribution


@runtime_checkable
class Stochastic(Protocol):
    """An agent whose policy is a distribution.

    `StochasticPolicy` is the base of ours, but it is an `Agent`: what agents
    are made of cannot import it, and asks this.
    """

    def distribution(self, observation: Any) -> Distribution:
        """Returns the distribution of actions for raw observations."""
