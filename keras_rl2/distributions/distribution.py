"""The interface of all distributions, and forbidden choices."""

import abc
from typing import Self

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import check_same_shape


class Distribution(abc.ABC):
    """A batch of distributions over actions.

    It is made from a network's output in each forward pass, and has no state.
    Sampling is a function of noise that the caller draws, so that it has one
    definition in the training graph and in the actor, can be seeded, and lets
    gradients through where the action is continuous. Log-probabilities,
    entropies and divergences are computed in float32 or wider, whatever the
    parameters' dtype.

    Example:

    >>> from keras_rl2.distributions.categorical import Categorical
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


#: Logit or value of forbidden actions: so low that noise cannot lift it, and so
#: far from the largest float32 that its product with a temperature, or a sum of
#: some, is finite: an infinity times a probability of zero is not.
FORBIDDEN = -1e32


def forbid(logits: TensorLike, mask: TensorLike) -> Tensor:
    """Excludes forbidden actions from a distribution, or from a maximum.

    Their probability is exactly 0, so that entropy, divergence and gradient
    are those of the actions that are allowed:

        l'_a = l_a where m_a = 1, else -1e32

    Args:
        logits: `[B, A]` float. Unnormalised log-probabilities, or values.
        mask: `[B, A]` of any dtype. 1 where an action is allowed, else 0.

    Returns:
        `[B, A]` float32 or wider.

    Raises:
        ValueError: If the shapes differ.

    Example:

    >>> forbid([[1.0, 2.0]], [[1, 0]]).numpy().tolist()[0][0]
    1.0

    Reference:
        - [Huang and Ontañón, 2022](https://arxiv.org/abs/2006.14171).
    """
    check_same_shape(logits=logits, mask=mask)
    (logits,) = as_float(logits)
    allowed = ops.cast(mask, "float32") > 0.5
    return ops.where(allowed, logits, ops.full_like(logits, FORBIDDEN))
