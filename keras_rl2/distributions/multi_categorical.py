"""Several independent categorical distributions side by side."""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Self
from typing import cast

import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape
from keras_rl2.basics.shapes import check_shape
from keras_rl2.distributions.categorical import Categorical
from keras_rl2.distributions.distribution import Distribution


class MultiCategorical(Distribution):
    """K independent choices, the k-th among `sizes[k]` actions.

    Args:
        logits: `[B, sum(sizes)]` float. Logits of all choices side by side.
        sizes: Sequence of K int. Number of actions of each choice.

    Raises:
        ValueError: If the logits are not of rank 2, a size is less than 1, or
            the sizes do not add up to the logits' width.

    Example:

    >>> policy = MultiCategorical([[0.0, 9.0, 5.0, 0.0, 0.0]], sizes=(2, 3))
    >>> policy.mode().numpy().tolist()
    [[1, 0]]
    """

    def __init__(self, logits: TensorLike, sizes: Sequence[int]) -> None:
        check_rank(2, logits=logits)
        (self.logits,) = as_float(logits)
        self.sizes = tuple(int(size) for size in sizes)
        width = self.logits.shape[-1]
        if not self.sizes or min(self.sizes) < 1 or sum(self.sizes) != width:
            raise ValueError(
                "Expected sizes of 1 or more that add up to the width of the "
                f"logits. Received: sizes={self.sizes}, logits of width {width}"
            )
        self.choices = [Categorical(part) for part in self._split(self.logits)]

    def log_prob(self, action: TensorLike) -> Tensor:
        """Returns the log-probability of actions.

        Args:
            action: `[B, K]` int. One action of each choice.

        Returns:
            `[B]` float32 or wider.

        Raises:
            ValueError: If the action is not of shape `[B, K]`.
        """
        check_shape((self.logits.shape[0], len(self.sizes)), action=action)
        chosen = ops.convert_to_tensor(action)
        return _sum(
            choice.log_prob(chosen[:, k])
            for k, choice in enumerate(self.choices)
        )

    def entropy(self) -> Tensor:
        """Returns the sum of the choices' entropies in nats, `[B]`."""
        return _sum(choice.entropy() for choice in self.choices)

    def kl(self, other: Self) -> Tensor:
        """Returns the sum of the choices' divergences in nats.

        Args:
            other: `MultiCategorical`. Of the same sizes.

        Returns:
            `[B]` float32 or wider.

        Raises:
            ValueError: If the other is not of the same class and sizes.
        """
        self._check_same_class(other)
        if self.sizes != other.sizes:
            raise ValueError(
                "Expected equal sizes. "
                f"Received: {self.sizes} and {other.sizes}"
            )
        return _sum(
            mine.kl(theirs)
            for mine, theirs in zip(self.choices, other.choices, strict=True)
        )

    def mode(self) -> Tensor:
        """Returns the most probable action of each choice, `[B, K]` int32."""
        return ops.stack([choice.mode() for choice in self.choices], axis=-1)

    def sample(self, noise: TensorLike) -> Tensor:
        """Returns argmax(logits + noise) of each choice.

        Args:
            noise: `[B, sum(sizes)]` float. Standard Gumbel.

        Returns:
            `[B, K]` int32.

        Raises:
            ValueError: If the noise is not of the logits' shape.
        """
        check_same_shape(logits=self.logits, noise=noise)
        (noise,) = as_float(noise)
        pairs = zip(self.choices, self._split(noise), strict=True)
        return ops.stack(
            [choice.sample(part) for choice, part in pairs], axis=-1
        )

    def _split(self, array: Tensor) -> list[Tensor]:
        """Cuts [B, sum(sizes)] into K arrays [B, size]."""
        ends = np.cumsum(self.sizes)
        return [
            array[:, end - size : end]
            for size, end in zip(self.sizes, ends.tolist(), strict=True)
        ]


def _sum(terms: Iterable[Tensor]) -> Tensor:
    """Returns the sum of one term or more."""
    return cast(Tensor, sum(terms))
