"""Several choices at once."""

import itertools
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
from keras import ops

from keras_rl2.basics.shapes import Tensor
from keras_rl2.basics.shapes import check_shape
from keras_rl2.distributions.composite import MultiCategorical
from keras_rl2.distributions.policy_head import PolicyHead
from keras_rl2.distributions.policy_head import reshape_action
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
        self.start = np.asarray(
            np.zeros_like(self.nvec) if start is None else start, dtype="int32"
        )
        if self.nvec.size == 0 or self.nvec.min() < 1:
            raise ValueError(
                f"Expected nvec of 1 or more each. Received: nvec={nvec}"
            )
        check_shape(self.nvec.shape, start=self.start)
        self.parameter_sizes = (int(self.nvec.sum()),)
        self.noise_shape = self.parameter_sizes
        self.mask_size = int(self.nvec.sum())
        self.action_shape = (self.nvec.size,)
        self.changes_action = self.nvec.ndim != 1 or bool(self.start.any())

    def __call__(
        self, parameters: Tensor, log_std: Tensor | None = None
    ) -> MultiCategorical:
        """Returns a `MultiCategorical` from logits `[B, sum(nvec)]`."""
        self._check(parameters, log_std)
        return MultiCategorical(parameters, self.nvec.ravel().tolist())

    def to_environment(self, action: Tensor) -> Tensor:
        """Adds `start`, in the space's shape: `[B, *nvec.shape]` int32."""
        action = ops.cast(action, "int32")
        if self.start.any():
            action = action + ops.convert_to_tensor(self.start.ravel())
        return reshape_action(action, self.nvec.shape)

    def from_environment(self, action: Tensor) -> Tensor:
        """Subtracts `start`, side by side: `[B, K]` int32."""
        # [B, *nvec.shape] -> [B, K]
        action = ops.reshape(
            ops.cast(action, "int32"), (-1, *self.action_shape)
        )
        return action - ops.convert_to_tensor(self.start.ravel())

    def random_action(
        self,
        generator: np.random.Generator,
        leading_shape: Sequence[int],
        mask: npt.NDArray[Any] | None = None,
    ) -> npt.NDArray[Any]:
        """Draws each choice, before `start` is added: `[..., K]` int32."""
        if mask is not None:
            choices = [
                allowed_choice(part, generator.random(part.shape))
                for part in self._parts(mask)
            ]
            return np.stack(choices, axis=-1)
        shape = (*leading_shape, *self.action_shape)
        return generator.integers(self.nvec.ravel(), size=shape, dtype="int32")

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """Where each choice stands in an action mask."""
        ends = np.cumsum(self.nvec.ravel()).tolist()
        return tuple(itertools.pairwise([0, *ends]))

    def _parts(self, mask: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """Cuts masks `[..., sum(nvec)]` into those of each choice."""
        return np.split(mask, np.cumsum(self.nvec.ravel())[:-1], axis=-1)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        return {"nvec": self.nvec.tolist(), "start": self.start.tolist()}
