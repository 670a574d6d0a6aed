"""Several independent distributions as one, among them choices side by side."""

from collections.abc import Sequence
from typing import Self

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_same_floats
from keras_rl2.basics.shapes import check_shape
from keras_rl2.distributions.categorical import Categorical
from keras_rl2.distributions.distribution import Distribution


class Composite(Distribution):
    """Several independent parts, such as a choice and a few numbers.

    An action is the parts' actions side by side, as floats, so that it is one
    array wherever it is stored: integers are exact in them up to 2^24.

    Args:
        parts: Sequence of `Distribution`. At least one.
        action_sizes: Sequence of ints. Numbers of one action of each part.
        noise_sizes: Sequence of ints. Numbers of noise that each part takes.

    Raises:
        ValueError: If there is no part.

    Example:

    >>> from keras_rl2.distributions import Categorical, DiagonalGaussian
    >>> policy = Composite(
    ...     [Categorical([[0.0, 5.0]]), DiagonalGaussian([[0.5]], [[0.0]])],
    ...     action_sizes=(1, 1), noise_sizes=(2, 1))
    >>> policy.mode().numpy().tolist()
    [[1.0, 0.5]]
    """

    action_dtype = "float32"

    def __init__(
        self,
        parts: Sequence[Distribution],
        action_sizes: Sequence[int],
        noise_sizes: Sequence[int],
    ) -> None:
        if not parts:
            raise ValueError("Expected at least one part. Received: 0")
        self.parts = tuple(parts)
        self._action_sizes = tuple(action_sizes)
        self._noise_sizes = tuple(noise_sizes)

    def log_prob(self, action: TensorLike) -> Tensor:
        """Returns the sum of the parts' log-probabilities, `[B]`.

        Args:
            action: `[B, K]`. Actions of all parts side by side.
        """
        check_shape((None, sum(self._action_sizes)), action=action)
        pieces = cut(ops.convert_to_tensor(action), self._action_sizes)
        terms = [
            # [B, 1] -> [B] of a choice
            part.log_prob(each[:, 0] if isinstance(part, Categorical) else each)
            for part, each in zip(self.parts, pieces, strict=True)
        ]
        return sum(terms)

    def entropy(self) -> Tensor:
        """Returns the sum of the parts' entropies in nats, `[B]`."""
        return sum(part.entropy() for part in self.parts)

    def kl(self, other: Self) -> Tensor:
        """Returns the sum of the parts' divergences in nats, `[B]`."""
        self._check_same_class(other)
        if len(self.parts) != len(other.parts):
            raise ValueError(
                f"Expected {len(self.parts)} parts. "
                f"Received: {len(other.parts)}"
            )
        pairs = zip(self.parts, other.parts, strict=True)
        return sum(mine.kl(theirs) for mine, theirs in pairs)

    def mode(self) -> Tensor:
        """Returns the modes of all parts side by side, `[B, K]`."""
        return self._join([part.mode() for part in self.parts])

    def sample(self, noise: TensorLike) -> Tensor:
        """Turns noise into actions `[B, K]`.

        Args:
            noise: `[B, N]` float. Noise of the parts, concatenated.
        """
        check_shape((None, sum(self._noise_sizes)), noise=noise)
        pieces = cut(as_same_floats(2, noise=noise)[0], self._noise_sizes)
        pairs = zip(self.parts, pieces, strict=True)
        return self._join([part.sample(piece) for part, piece in pairs])

    def _join(self, actions: list[Tensor]) -> Tensor:
        """Lays the parts' actions side by side: `[B, K]`."""
        columns = [
            # [B] -> [B, 1]
            ops.cast(
                action[:, None] if len(action.shape) == 1 else action,
                self.action_dtype,
            )
            for action in actions
        ]
        return ops.concatenate(columns, axis=-1)


class MultiCategorical(Composite):
    """K independent choices, the k-th among `sizes[k]` actions.

    An action is `[B, K]` int32, noise is `[B, sum(sizes)]` standard Gumbel.

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

    action_dtype = "int32"

    def __init__(self, logits: TensorLike, sizes: Sequence[int]) -> None:
        (self.logits,) = as_same_floats(2, logits=logits)
        self.sizes = tuple(int(size) for size in sizes)
        width = self.logits.shape[-1]
        if not self.sizes or min(self.sizes) < 1 or sum(self.sizes) != width:
            raise ValueError(
                "Expected sizes of 1 or more that add up to the width of the "
                f"logits. Received: sizes={self.sizes}, logits of width {width}"
            )
        choices = [Categorical(each) for each in cut(self.logits, self.sizes)]
        super().__init__(choices, (1,) * len(choices), self.sizes)


def cut(array: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """Cuts the last axis into pieces.

    Args:
        array: `[..., sum(sizes)]`.
        sizes: Sequence of ints. Width of each piece.

    Returns:
        list of `[..., size]`.
    """
    pieces, start = [], 0
    for size in sizes:
        pieces.append(array[..., start : start + size])
        start += size
    return pieces
