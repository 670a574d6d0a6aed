"""Losses and targets of value distributions, one row or number per example.

Letters: B is the batch, N the number of atoms or quantiles of a prediction, M
of a target.
"""

import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import as_scalar
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_same_shape
from keras_rl2.basics.shapes import check_shape
from keras_rl2.basics.shapes import static_shape


def categorical_projection(
    support: TensorLike, probabilities: TensorLike, target_support: TensorLike
) -> Tensor:
    """Moves a distribution onto the fixed atoms of a C51 network.

    Each atom, usually r + γ z, hands its mass to the two fixed atoms around
    it, the nearer the more, so that the mean is kept; beyond the ends all goes
    to the last one. The result is the target of a cross-entropy, thus a
    constant under gradient.

        p̂ᵢ = Σⱼ hᵢ(clip(xⱼ, z₁, z_N)) pⱼ

    with hᵢ the hat function: 1 at zᵢ, 0 at its neighbours, linear between.

    Args:
        support: `[B, M]` float. The atoms x, in any order.
        probabilities: `[B, M]` float. The mass p of each.
        target_support: `[N]` float. The atoms z, increasing, evenly spaced or
            not; taken in the precision of the others.

    Returns:
        `[B, N]` float32 or wider: the mass on each target atom.

    Raises:
        ValueError: If a rank or shape is wrong, or the target atoms are known
            and do not increase.

    Example:

    >>> categorical_projection(
    ...     [[0.5, 2.0, 9.0]], [[0.5, 0.25, 0.25]], [0.0, 1.0, 2.0]
    ... ).numpy().tolist()
    [[0.25, 0.25, 0.5]]

    Reference:
        - [Bellemare et al., 2017, C51](https://arxiv.org/abs/1707.06887)
    """
    check_rank(2, support=support, probabilities=probabilities)
    check_same_shape(support=support, probabilities=probabilities)
    _check_increasing(target_support)
    support, probabilities = as_float(support, probabilities)
    atoms = ops.convert_to_tensor(target_support, dtype=support.dtype)
    position = ops.clip(support, atoms[0], atoms[-1])[:, None, :]  # [B, 1, M]
    gaps = (atoms[1:] - atoms[:-1])[:, None]  # [N - 1, 1]
    # Rising from the atom before and falling to the next; the quotients are
    # exactly 0 and 1 at the atoms, so that mass that lies there stays whole.
    rising = (position - atoms[:-1, None]) / gaps  # [B, N - 1, M]
    falling = (atoms[1:, None] - position) / gaps
    edge = ops.ones_like(position)
    hat = ops.minimum(  # [B, N, M]
        ops.concatenate([edge, rising], axis=1),
        ops.concatenate([falling, edge], axis=1),
    )
    # Not a matrix product: on some devices those round to fewer digits.
    mass = ops.maximum(hat, 0.0) * probabilities[:, None, :]
    return ops.stop_gradient(ops.sum(mass, axis=-1))


def quantile_huber(
    quantiles: TensorLike,
    taus: TensorLike,
    targets: TensorLike,
    delta: TensorLike = 1.0,
) -> Tensor:
    """Fits quantiles of a return, each pulled to its own side.

    Summed over the quantiles, averaged over the targets. Not divided by δ, as
    in the paper on QR-DQN; that on IQN divides.

        u = yⱼ - θᵢ
        L = Σᵢ 1/M Σⱼ |τᵢ - 1(u < 0)| huber(u, δ)

    Args:
        quantiles: `[B, N]` float. θ, the predicted quantiles.
        taus: `[B, N]` float, or `[N]` for the same in all examples. τ, the
            fraction of each quantile, e.g. (i + 1/2) / N. Counts as a
            constant, in the precision of the others.
        targets: `[B, M]` float. y, samples or quantiles of the target, e.g.
            r + γ θ'. Counts as a constant.
        delta: float or scalar tensor. δ; 0 takes the absolute value of u, the
            plain quantile regression. Defaults to `1.0`.

    Returns:
        `[B]` float32 or wider, to minimise.

    Raises:
        ValueError: If a rank or shape is wrong.

    Example:

    >>> quantile_huber([[0.0, 2.0]], [0.25, 0.75], [[1.0]]).numpy().tolist()
    [0.25]

    Reference:
        - [Dabney et al., 2018, QR-DQN](https://arxiv.org/abs/1710.10044)
        - [Dabney et al., 2018, IQN](https://arxiv.org/abs/1806.06923)
    """
    _check_quantiles(quantiles, taus, targets)
    quantiles, targets = as_float(quantiles, targets)
    taus = ops.convert_to_tensor(taus, dtype=quantiles.dtype)
    limit = as_scalar(quantiles, delta=delta)
    targets = ops.stop_gradient(targets)[:, None, :]  # [B, 1, M]
    error = targets - quantiles[:, :, None]  # [B, N, M]
    size = ops.abs(error)
    quadratic = ops.minimum(size, limit)
    loss = 0.5 * ops.square(quadratic) + limit * (size - quadratic)
    loss = ops.where(limit > 0.0, loss, size)
    level = ops.stop_gradient(taus)[..., None]  # [B, N, 1] or [N, 1]
    weight = ops.where(error < 0.0, 1.0 - level, level)
    return ops.sum(ops.mean(weight * loss, axis=2), axis=1)


def _check_increasing(target_support: TensorLike) -> None:
    """Raises an error unless target atoms are `[N]` and, if known, increase."""
    check_rank(1, target_support=target_support)
    if not ops.is_tensor(target_support):
        atoms = np.asarray(target_support)
        if atoms.size == 0 or not np.all(np.diff(atoms) > 0):
            raise ValueError(
                f"Expected increasing target_support. Received: {atoms}"
            )


def _check_quantiles(
    quantiles: TensorLike, taus: TensorLike, targets: TensorLike
) -> None:
    """Checks the shapes `[B, N]`, `[B, N]` or `[N]`, and `[B, M]`."""
    check_rank(2, quantiles=quantiles, targets=targets)
    shape = static_shape(quantiles) or (None, None)
    check_shape((shape[0], None), targets=targets)
    taus_shape = static_shape(taus)
    if taus_shape is not None and len(taus_shape) == 1:
        check_shape(shape[1:], taus=taus)
    else:
        check_same_shape(quantiles=quantiles, taus=taus)
