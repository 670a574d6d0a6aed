"""Distributions of returns, from the outputs of networks of action values.

Letters: B is the batch, A the number of actions, N that of the outputs of each
action (atoms or quantiles), M that of the atoms of a target.
"""

import abc
from collections.abc import Sequence

import numpy as np
from keras import ops

from keras_rl2.basics.arguments import check_at_least
from keras_rl2.basics.arguments import check_choice
from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import TensorLike
from keras_rl2.basics.shapes import as_float
from keras_rl2.basics.shapes import as_same_floats
from keras_rl2.basics.shapes import as_scalar
from keras_rl2.basics.shapes import check_rank
from keras_rl2.basics.shapes import check_shape
from keras_rl2.losses.value import huber


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
    support, probabilities = as_same_floats(
        2, support=support, probabilities=probabilities
    )
    check_rank(1, target_support=target_support)
    if not ops.is_tensor(target_support):
        known = np.asarray(target_support)
        if known.size == 0 or not np.all(np.diff(known) > 0):
            raise ValueError(
                f"Expected increasing target_support. Received: {known}"
            )
    atoms = ops.convert_to_tensor(target_support, dtype=support.dtype)
    position = ops.clip(support, atoms[0], atoms[-1])[:, None, :]  # [B, 1, M]
    gaps = (atoms[1:] - atoms[:-1])[:, None]  # [N - 1, 1]
    # The hats rise from the atom before and fall to the next; quotients are
    # exactly 0 and 1 at the atoms, so that mass that lies there stays whole.
    rising = (position - atoms[:-1, None]) / gaps  # [B, N - 1, M]
    falling = (atoms[1:, None] - position) / gaps
    edge = ops.ones_like(position)
    hat = ops.minimum(  # [B, N, M]
        ops.concatenate([edge, rising], axis=1),
        ops.concatenate([falling, edge], axis=1),
    )
    # A matrix product would round to fewer digits on some devices.
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
            fraction of each quantile, for example (i + 1/2) / N. Counts as a
            constant, in the precision of the others.
        targets: `[B, M]` float. y, samples or quantiles of the target, for
            example r + γ θ'. Counts as a constant.
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
    check_rank(2, quantiles=quantiles, targets=targets)
    check_rank((1, 2), taus=taus)
    quantiles, targets = as_float(quantiles, targets)
    check_shape((quantiles.shape[0], None), targets=targets)
    level = ops.convert_to_tensor(taus, dtype=quantiles.dtype)
    check_shape(quantiles.shape[2 - len(level.shape) :], taus=level)
    limit = as_scalar(quantiles, delta=delta)
    targets = ops.stop_gradient(targets)[:, None, :]  # [B, 1, M]
    error = targets - quantiles[:, :, None]  # [B, N, M]
    size = ops.abs(error)
    quadratic = ops.minimum(size, limit)
    loss = 0.5 * ops.square(quadratic) + limit * (size - quadratic)
    loss = ops.where(limit > 0.0, loss, size)
    level = ops.stop_gradient(level)[..., None]  # [B, N, 1] or [N, 1]
    weight = ops.where(error < 0.0, 1.0 - level, level)
    return ops.sum(ops.mean(weight * loss, axis=2), axis=1)


class ValueDistribution(abc.ABC):
    """The interpretation of the outputs of networks of action values.

    Attributes:
        atoms: int. Number of outputs of each action, N.

    Example:

    >>> values = value_distribution("quantile", 4, (0.0, 1.0))
    >>> values.mean(ops.convert_to_tensor([[1.0, 2.0, 3.0, 6.0]])).numpy()
    array([3.], dtype=float32)
    """

    atoms: int

    @abc.abstractmethod
    def mean(self, outputs: Tensor) -> Tensor:
        """Returns the Q-values `[...]` of outputs `[..., N]` float32."""

    def target(
        self, reward: Tensor, discount: Tensor, following: Tensor
    ) -> Tensor:
        """Returns the target of outputs, which `compare` takes.

        Args:
            reward: `[B]` float32.
            discount: `[B]` float32.
            following: `[B, M]`. Outputs of a target network for the next
                action, or any number of samples of the next return.

        Returns:
            `[B, M]`, samples of the return.
        """
        discount = discount[:, None]
        # Outputs after the end may be anything.
        following = ops.where(discount == 0.0, 0.0, discount * following)
        return reward[:, None] + following

    @abc.abstractmethod
    def compare(self, outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Compares the outputs for an action with the target of its return.

        Args:
            outputs: `[B, N]`. Outputs of the online network.
            target: `[B]` or `[B, M]`. Of `target`. Counts as a constant.

        Returns:
            `[B]`, to minimise, and `[B]`, the error of each transition, which
            has no gradient; float32.
        """


class ScalarValues(ValueDistribution):
    """One output for each action, its value."""

    atoms = 1

    def __init__(self, loss: str = "mse") -> None:
        self._loss = loss

    def mean(self, outputs: Tensor) -> Tensor:
        """Returns the Q-values, which are the outputs."""
        return outputs[..., 0]

    def target(
        self, reward: Tensor, discount: Tensor, following: Tensor
    ) -> Tensor:
        """Returns the target values `[B]`, from next values `[B]` or `[B, 1]`.

        Values after the end may be anything.
        """
        following = discount * ops.reshape(following, ops.shape(discount))
        return reward + ops.where(discount == 0.0, 0.0, following)

    def compare(self, outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the losses of TD errors, and the TD errors."""
        td_error = ops.stop_gradient(target) - self.mean(outputs)
        if self._loss == "huber":
            loss = huber(td_error)
        else:
            loss = 0.5 * ops.square(td_error)
        return loss, ops.stop_gradient(td_error)


class CategoricalValues(ValueDistribution):
    """Logits of a distribution over returns on evenly spaced atoms, C51."""

    def __init__(self, atoms: int, support: tuple[float, float]) -> None:
        self.atoms = atoms
        self.support = np.linspace(*support, atoms, dtype="float32")

    def mean(self, outputs: Tensor) -> Tensor:
        """Returns the means of the distributions."""
        probabilities = ops.softmax(outputs, axis=-1)
        return ops.sum(probabilities * self.support, axis=-1)

    def target(
        self, reward: Tensor, discount: Tensor, following: Tensor
    ) -> Tensor:
        """Returns the probabilities of the atoms, projected, `[B, N]`."""
        atoms = ops.convert_to_tensor(self.support)[None]
        return categorical_projection(
            super().target(reward, discount, atoms),
            ops.softmax(following, axis=-1),
            self.support,
        )

    def compare(self, outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Returns cross-entropies to the projected target, twice."""
        target = ops.stop_gradient(target)
        loss = -ops.sum(target * ops.log_softmax(outputs, axis=-1), axis=-1)
        return loss, ops.stop_gradient(loss)


class QuantileValues(ValueDistribution):
    """Quantiles of the distribution of returns, at even fractions, QR-DQN."""

    def __init__(self, atoms: int) -> None:
        self.atoms = atoms
        self.taus = (np.arange(atoms, dtype="float32") + 0.5) / atoms

    def mean(self, outputs: Tensor) -> Tensor:
        """Returns the means of the quantiles."""
        return ops.mean(outputs, axis=-1)

    def compare(self, outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Returns quantile Huber losses, twice."""
        loss = quantile_huber(outputs, self.taus, target)
        return loss, ops.stop_gradient(loss)


def value_distribution(
    distributional: str | None,
    atoms: int,
    support: tuple[float, float],
    loss: str = "mse",
) -> ValueDistribution:
    """Makes the interpretation that arguments of an agent select.

    Args:
        distributional: None for one value, `"categorical"` or `"quantile"`.
        atoms: int. Outputs of each action, N, of a distribution.
        support: tuple of two floats. First and last atom of `"categorical"`.
        loss: str. `"mse"` or `"huber"`, of values. Defaults to `"mse"`.

    Returns:
        `ValueDistribution`.

    Example:

    >>> value_distribution("categorical", 3, (-1.0, 1.0), "huber").support
    array([-1.,  0.,  1.], dtype=float32)
    """
    check_choice(
        distributional=(distributional, (None, "categorical", "quantile")),
        loss=(loss, ("huber", "mse")),
    )
    check_at_least(2, atoms=atoms)
    if distributional is None:
        return ScalarValues(loss)
    if distributional == "quantile":
        return QuantileValues(int(atoms))
    return CategoricalValues(int(atoms), support)


def as_support(support: Sequence[float]) -> tuple[float, float]:
    """Returns the ends of a support as two floats.

    Example:

    >>> as_support([-1, 1])
    (-1.0, 1.0)
    """
    try:
        low, high = map(float, support)
    except (TypeError, ValueError):
        low = high = np.nan
    if not -np.inf < low < high < np.inf:
        raise ValueError(
            "Expected `support` to be two finite numbers, the smaller first. "
            f"Received: support={support!r}"
        )
    return low, high
