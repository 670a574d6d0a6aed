"""Several choices at once."""

import itertools
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import check_shape
from keras_rl2.distributions.composite import MultiCategorical
from keras_rl2.distributions.composite import cut
from keras_rl2.distributions.policy_head import PolicyHead
from keras_rl2.distributions.standard_noise import StandardNoise
from keras_rl2.spaces.supported import allowed_choice


@keras.saving.register_keras_serializable(package="keras_rl2")
class MultiDiscreteHead(PolicyHead):
    """Several independent choices.

    Args:
        nvec: Sequence of int. Number of actions of each choice, nested as the
            environment's action is; the policy's own action is flat, `[B, K]`.
        start: Sequence of int or None. Number of the first action of each
            choice, nested alike; None for 0. Defaults to `None`.

    Raises:
        ValueError: If a number is less than 1, or the shapes differ.

    Example:

    >>> head = MultiDiscreteHead([2, 3])
    >>> head([[0.0, 1.0, 5.0, 0.0, 0.0]]).mode().numpy().tolist()
    [[1, 0]]
    """

    def __init__(
        self, nvec: Sequence[Any], start: Sequence[Any] | None = None
    ) -> None:
        self.nvec = np.asarray(nvec, dtype="int32")
        first = np.zeros_like(self.nvec) if start is None else start
        self.start = np.asarray(first, dtype="int32")
        if self.nvec.size == 0 or self.nvec.min() < 1:
            raise ValueError(
                f"Expected nvec of 1 or more each. Received: nvec={nvec}"
            )
        check_shape(self.nvec.shape, start=self.start)
        self.shape = self.nvec.shape
        self.mask_size = int(self.nvec.sum())
        self.parameter_sizes = (self.mask_size,)
        self.noise = StandardNoise("gumbel", self.mask_size)
        self.action_shape = (self.nvec.size,)
        self.changes_action = self.nvec.ndim != 1 or bool(self.start.any())

    def _distribution(
        self, parameters: Tensor, log_std: Tensor | None
    ) -> MultiCategorical:
        """Returns a `MultiCategorical` from logits `[B, sum(nvec)]`."""
        return MultiCategorical(parameters, self.nvec.ravel().tolist())

    def _draw(
        self, generator: np.random.Generator, shape: tuple[int, ...], mask: Any
    ) -> npt.NDArray[Any]:
        """Draws each choice, before `start` is added: `[..., K]` int32."""
        if mask is not None:
            choices = [
                allowed_choice(part, generator.random(part.shape))
                for part in cut(mask, self.nvec.ravel().tolist())
            ]
            return np.stack(choices, axis=-1)
        return generator.integers(self.nvec.ravel(), size=shape, dtype="int32")

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """Where each choice stands in an action mask."""
        ends = np.cumsum(self.nvec.ravel()).tolist()
        return tuple(itertools.pairwise([0, *ends]))

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        return {"nvec": self.nvec.tolist(), "start": self.start.tolist()}
