"""Interpretations of a Q-network's outputs: values or return distributions.

`B` is the batch, `A` the number of actions, `N` the outputs of each action.
"""

import abc
from collections.abc import Sequence

import numpy as np
from keras import ops

from keras_rl2 import losses
from keras_rl2.basics.arguments import check_at_least
from keras_rl2.basics.arguments import check_choice
from keras_rl2.basics.arguments import is_number
from keras_rl2.basics.shapes import Tensor


class ValueDistribution(abc.ABC):
    """The interpretation of the outputs of `DQN`'s networks.

    Attributes:
        atoms: int. Number of outputs of each action, N.
    """

    atoms: int

    @abc.abstractmethod
    def mean(self, outputs: Tensor) -> Tensor:
        """Returns the Q-values.

        Args:
            outputs: `[B, A, N]` float32. Of a network.

        Returns:
            `[B, A]` float32.
        """

    @abc.abstractmethod
    def loss(
        self,
        outputs: Tensor,
        batch: dict[str, Tensor],
        next_outputs: Tensor,
        selector: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Compares the outputs for actions with the targets of transitions.

        Args:
            outputs: `[B, A, N]`. Outputs of the online network.
            batch: dict of `action`, `reward` and `discount`, `[B]`.
            next_outputs: `[B, A, N]`. Outputs of the target network for the
                next observations.
            selector: `[B, A]`. The next action is that of the largest value.

        Returns:
            `[B]`, to minimise, and `[B]`, the surprise of each transition;
            float32. The gradient reaches `outputs` alone.
        """


class ScalarValues(ValueDistribution):
    """One output for each action, its value.

    Args:
        loss: str. `"huber"` or `"mse"` (half the square) of the TD error.
    """

    atoms = 1

    def __init__(self, loss: str) -> None:
        self._loss = loss

    def mean(self, outputs: Tensor) -> Tensor:
        """Returns the Q-values, which are the outputs."""
        return outputs[..., 0]

    def loss(
        self,
        outputs: Tensor,
        batch: dict[str, Tensor],
        next_outputs: Tensor,
        selector: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Returns the loss of TD errors, and their sizes."""
        # With the target's own values as selector it is plain Q-learning.
        td_error = losses.double_q_learning(
            self.mean(outputs),
            batch["action"],
            batch["reward"],
            batch["discount"],
            self.mean(next_outputs),
            selector,
        )
        if self._loss == "huber":
            loss = losses.huber(td_error)
        else:
            loss = 0.5 * ops.square(td_error)
        return loss, ops.abs(ops.stop_gradient(td_error))


class CategoricalValues(ValueDistribution):
    """Logits of a distribution over returns on evenly spaced atoms, C51.

    Args:
        atoms: int. Their number.
        support: tuple of two floats. The first and the last.
    """

    def __init__(self, atoms: int, support: tuple[float, float]) -> None:
        self.atoms = atoms
        self.support = np.linspace(*support, atoms, dtype="float32")

    def mean(self, outputs: Tensor) -> Tensor:
        """Returns the means of the distributions."""
        probabilities = ops.softmax(outputs, axis=-1)
        return ops.sum(probabilities * self.support, axis=-1)

    def loss(
        self,
        outputs: Tensor,
        batch: dict[str, Tensor],
        next_outputs: Tensor,
        selector: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Returns cross-entropies to projected targets, also as surprise."""
        following = _of_action(next_outputs, ops.argmax(selector, axis=-1))
        target = losses.categorical_projection(
            _moved(batch, ops.convert_to_tensor(self.support)[None]),
            ops.softmax(following, axis=-1),
            self.support,
        )
        chosen = _of_action(outputs, batch["action"])
        loss = -ops.sum(target * ops.log_softmax(chosen, axis=-1), axis=-1)
        return loss, ops.stop_gradient(loss)


class QuantileValues(ValueDistribution):
    """Quantiles of the distribution of returns, at even fractions, QR-DQN.

    Args:
        atoms: int. Their number.
    """

    def __init__(self, atoms: int) -> None:
        self.atoms = atoms
        self.taus = (np.arange(atoms, dtype="float32") + 0.5) / atoms

    def mean(self, outputs: Tensor) -> Tensor:
        """Returns the means of the quantiles."""
        return ops.mean(outputs, axis=-1)

    def loss(
        self,
        outputs: Tensor,
        batch: dict[str, Tensor],
        next_outputs: Tensor,
        selector: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Returns quantile Huber losses, also as surprise."""
        following = _of_action(next_outputs, ops.argmax(selector, axis=-1))
        loss = losses.quantile_huber(
            _of_action(outputs, batch["action"]),
            self.taus,
            _moved(batch, following),
        )
        return loss, ops.stop_gradient(loss)


def value_distribution(
    distributional: str | None,
    atoms: int,
    support: tuple[float, float],
    loss: str,
) -> ValueDistribution:
    """Makes the interpretation that arguments of `DQN` select.

    Args:
        distributional: None, `"categorical"` or `"quantile"`.
        atoms: int. Number of outputs of each action, for distributions.
        support: Sequence of two floats. Smallest and largest return.
        loss: str. `"huber"` or `"mse"`.

    Returns:
        `ValueDistribution`.

    Raises:
        ValueError: If an argument is not one of those that are allowed.

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

    Args:
        support: Sequence of two numbers.

    Raises:
        ValueError: If they are not two finite numbers that increase.

    Example:

    >>> as_support([-1, 1])
    (-1.0, 1.0)
    """
    try:
        low, high = (
            float(end) if is_number(end) else np.nan for end in support
        )
    except (TypeError, ValueError):
        low = high = np.nan
    if not -np.inf < low < high < np.inf:
        raise ValueError(
            "Expected `support` to be two finite numbers, the smaller first. "
            f"Received: support={support!r}"
        )
    return low, high


def _of_action(outputs: Tensor, action: Tensor) -> Tensor:
    """Returns the outputs `[B, N]` of one action each, of `[B, A, N]`."""
    actions = ops.arange(outputs.shape[1], dtype="int32")
    mask = ops.cast(action, "int32")[:, None] == actions
    # The gradient of a gather is a scatter, which XLA likes less.
    return ops.sum(ops.where(mask[:, :, None], outputs, 0.0), axis=1)


def _moved(batch: dict[str, Tensor], returns: Tensor) -> Tensor:
    """Returns the values of returns `[B, N]` one transition before."""
    return batch["reward"][:, None] + batch["discount"][:, None] * returns
