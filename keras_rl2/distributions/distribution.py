"""The interface of all distributions."""

import abc
from typing import Self

from keras_rl2.shapes import Tensor


class Distribution(abc.ABC):
    """A batch of distributions over actions.

    Made anew from a network's output in each forward pass; holds no state.
    Sampling is a function of noise that the caller draws, so that it has one
    definition in the training graph and in the actor, can be seeded, and lets
    gradients through where the action is continuous. Log-probabilities,
    entropies and divergences are computed in float32 or wider, whatever the
    parameters' dtype.
    """

    @abc.abstractmethod
    def log_prob(self, action: Tensor) -> Tensor:
        """Return the log-probability (density) of actions.

        Args:
            action: One action per example, as `sample` gives them.

        Returns:
            `[B]`.

        Raises:
            ValueError: If the shape is not that of a batch of actions.
        """

    @abc.abstractmethod
    def entropy(self) -> Tensor:
        """Return the entropy -E[log p] in nats, `[B]`."""

    @abc.abstractmethod
    def kl(self, other: Self) -> Tensor:
        """Return the divergence KL(self || other) in nats.

        Args:
            other: Distribution of the same class, size and bounds.

        Returns:
            `[B]`, 0 where the two are equal.

        Raises:
            ValueError: If the two are not of one kind.
        """

    @abc.abstractmethod
    def mode(self) -> Tensor:
        """Return the action to take where none shall be left to chance."""

    @abc.abstractmethod
    def sample(self, noise: Tensor) -> Tensor:
        """Turn noise into actions.

        Args:
            noise: Independent draws from the standard distribution that the
                class names.

        Returns:
            One action per example.

        Raises:
            ValueError: If the shape of the noise is wrong.
        """

    def sample_and_log_prob(self, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Turn noise into actions and return their log-probability as well.

        Args:
            noise: As for `sample`.

        Returns:
            The actions and their log-probability `[B]`.
        """
        action = self.sample(noise)
        return action, self.log_prob(action)

    def _check_same_class(self, other: "Distribution") -> None:
        """Refuse a divergence between two kinds of distribution."""
        if type(other) is not type(self):
            raise ValueError(
                f"expected another {type(self).__name__}. Received: {other!r}"
            )
