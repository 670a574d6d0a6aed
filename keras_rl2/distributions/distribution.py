"""The interface of all distributions."""

import abc
from typing import Self

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike


class Distribution(abc.ABC):
    """A batch of distributions over actions.

    It is made from a network's output in each forward pass, and has no state.
    Sampling is a function of noise that the caller draws, so that it has one
    definition in the training graph and in the actor, can be seeded, and lets
    gradients through where the action is continuous. Log-probabilities,
    entropies and divergences are computed in float32 or wider, whatever the
    parameters' dtype.

    Example:

    >>> from keras_rl2.distributions import Categorical
    >>> policy = Categorical([[0.0, 0.0]])
    >>> isinstance(policy, Distribution)
    True
    >>> round(float(policy.kl(Categorical([[0.0, 0.0]]))[0]), 4)
    0.0
    """

    @abc.abstractmethod
    def log_prob(self, action: TensorLike) -> Tensor:
        """Returns the log-probability (density) of actions.

        Args:
            action: `[B, ...]`. One action per example, in the form of `sample`.

        Returns:
            `[B]` float32 or wider.

        Raises:
            ValueError: If the shape is not that of a batch of actions.
        """

    @abc.abstractmethod
    def entropy(self) -> Tensor:
        """Returns the entropy -E[log p] in nats, `[B]`."""

    @abc.abstractmethod
    def kl(self, other: Self) -> Tensor:
        """Returns the divergence KL(self || other) in nats.

        Args:
            other: `Distribution`. Of the same class, size and bounds.

        Returns:
            `[B]` float32 or wider: 0 where the two are equal.

        Raises:
            ValueError: If the two are not of one kind.
        """

    @abc.abstractmethod
    def mode(self) -> Tensor:
        """Returns the deterministic action."""

    @abc.abstractmethod
    def sample(self, noise: TensorLike) -> Tensor:
        """Turns noise into actions.

        Args:
            noise: `[B, ...]` float. Independent draws from the standard
                distribution that the class names.

        Returns:
            `[B, ...]`: one action per example.

        Raises:
            ValueError: If the shape of the noise is wrong.
        """

    def sample_and_log_prob(self, noise: TensorLike) -> tuple[Tensor, Tensor]:
        """Turns noise into actions and returns their log-probability as well.

        Args:
            noise: `[B, ...]` float. As for `sample`.

        Returns:
            tuple: actions `[B, ...]` and their log-probability `[B]`.
        """
        action = self.sample(noise)
        return action, self.log_prob(action)

    def _check_same_class(self, other: "Distribution") -> None:
        """Raises an error for a distribution of another kind."""
        if type(other) is not type(self):
            raise ValueError(
                f"Expected another {type(self).__name__}. Received: {other!r}"
            )
