"""Forbidding actions."""

from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import check_same_shape

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
