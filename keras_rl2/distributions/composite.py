"""Several independent distributions as one."""

from collections.abc import Sequence
from typing import Self
from typing import cast

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import check_rank
from keras_rl2.distributions.distribution import Distribution


class Composite(Distribution):
    """Several independent parts, e.g. a choice and a few numbers.

    An action is the parts' actions side by side, as floats, so that it is one
    array wherever it is stored: integers are exact in them up to 2^24.

    Args:
        parts: Sequence of `Distribution`. At least one.
        action_sizes: Sequence of ints. Numbers of one action of each part.
        noise_sizes: Sequence of ints. Numbers of noise that each part takes.
        scalar: Sequence of bool. Which parts' actions are `[B]`, not
            `[B, size]`, and integers by themselves.
        dtypes: Sequence of str. Dtypes of the parts' actions.

    Raises:
        ValueError: If there is no part, or they are not described one by one.

    Example:

    >>> from keras_rl2.distributions import Categorical, DiagonalGaussian
    >>> policy = Composite(
    ...     [Categorical([[0.0, 5.0]]), DiagonalGaussian([[0.5]], [[0.0]])],
    ...     action_sizes=(1, 1), noise_sizes=(2, 1), scalar=(True, False),
    ...     dtypes=("int32", "float32"))
    >>> policy.mode().numpy().tolist()
    [[1.0, 0.5]]
    """

    def __init__(
        self,
        parts: Sequence[Distribution],
        action_sizes: Sequence[int],
        noise_sizes: Sequence[int],
        scalar: Sequence[bool],
        dtypes: Sequence[str],
    ) -> None:
        described = {*map(len, (action_sizes, noise_sizes, scalar, dtypes))}
        if not parts or described != {len(parts)}:
            raise ValueError(
                "Expected at least one part, with sizes and dtype of each. "
                f"Received: {len(parts)} parts, action_sizes={action_sizes}, "
                f"noise_sizes={noise_sizes}, scalar={scalar}, dtypes={dtypes}"
            )
        self.parts = tuple(parts)
        self._action_sizes = tuple(action_sizes)
        self._noise_sizes = tuple(noise_sizes)
        self._scalar = tuple(scalar)
        self._dtypes = tuple(dtypes)

    def log_prob(self, action: TensorLike) -> Tensor:
        """Returns the sum of the parts' log-probabilities.

        Args:
            action: `[B, K]` float. Actions of all parts side by side.

        Returns:
            `[B]` float32 or wider.

        Raises:
            ValueError: If the action is not of rank 2.
        """
        check_rank(2, action=action)
        total = [
            part.log_prob(own)
            for part, own in zip(self.parts, self._split(action), strict=True)
        ]
        return cast(Tensor, sum(total))

    def entropy(self) -> Tensor:
        """Returns the sum of the parts' entropies in nats, `[B]`."""
        return cast(Tensor, sum(part.entropy() for part in self.parts))

    def kl(self, other: Self) -> Tensor:
        """Returns the sum of the parts' divergences in nats.

        Args:
            other: `Composite`. Of parts alike.

        Returns:
            `[B]` float32 or wider.

        Raises:
            ValueError: If the other is not of the same class and parts.
        """
        self._check_same_class(other)
        if len(self.parts) != len(other.parts):
            raise ValueError(
                f"Expected a Composite of {len(self.parts)} parts. "
                f"Received: {len(other.parts)}"
            )
        pairs = zip(self.parts, other.parts, strict=True)
        return cast(Tensor, sum(mine.kl(theirs) for mine, theirs in pairs))

    def mode(self) -> Tensor:
        """Returns the modes of all parts side by side, `[B, K]` float32."""
        return self._join([part.mode() for part in self.parts])

    def sample(self, noise: TensorLike) -> Tensor:
        """Turns noise into actions.

        Args:
            noise: `[B, N]` float. Noise of the parts, concatenated.

        Returns:
            `[B, K]` float32.

        Raises:
            ValueError: If the noise is not of rank 2.
        """
        check_rank(2, noise=noise)
        pieces = _cut(noise, self._noise_sizes)
        return self._join(
            [
                part.sample(piece)
                for part, piece in zip(self.parts, pieces, strict=True)
            ]
        )

    def _split(self, action: TensorLike) -> list[Tensor]:
        """Splits `[B, K]` into the actions of the parts."""
        return [
            # [B, 1] -> [B] where it is one number
            ops.cast(piece[:, 0] if scalar else piece, dtype)
            for piece, scalar, dtype in zip(
                _cut(action, self._action_sizes),
                self._scalar,
                self._dtypes,
                strict=True,
            )
        ]

    def _join(self, actions: list[Tensor]) -> Tensor:
        """Lays the parts' actions side by side: `[B, K]` float32."""
        columns = [
            # [B] -> [B, 1]
            ops.cast(action[:, None] if scalar else action, "float32")
            for action, scalar in zip(actions, self._scalar, strict=True)
        ]
        return ops.concatenate(columns, axis=-1)


def _cut(array: TensorLike, sizes: Sequence[int]) -> list[Tensor]:
    """Cuts `[B, sum(sizes)]` into `[B, size]` each."""
    (array,) = as_float(array)
    pieces, start = [], 0
    for size in sizes:
        pieces.append(array[:, start : start + size])
        start += size
    return pieces
