"""One choice among n."""

from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions.categorical import Categorical
from keras_rl2.distributions.policy_head import PolicyHead
from keras_rl2.distributions.standard_noise import StandardNoise
from keras_rl2.spaces.supported import allowed_choice


@keras.saving.register_keras_serializable(package="keras_rl2")
class DiscreteHead(PolicyHead):
    """One of n actions.

    Args:
        n: int. Number of actions, at least 1.
        start: int. Number of the environment's first action. Defaults to `0`.

    Raises:
        ValueError: If `n` is less than 1.

    Example:

    >>> head = DiscreteHead(3, start=1)
    >>> action = head([[0.0, 5.0, 0.0]]).mode()
    >>> action.numpy().tolist(), head.to_environment(action).numpy().tolist()
    ([1], [2])
    """

    def __init__(self, n: int, start: int = 0) -> None:
        if n < 1:
            raise ValueError(f"Expected n of 1 or more. Received: n={n}")
        self.n = int(n)
        self.start = int(start)
        self.parameter_sizes = (self.n,)
        self.noise = StandardNoise("gumbel", self.n)
        self.mask_size = self.n
        self.action_shape = ()
        self.changes_action = self.start != 0

    def _distribution(
        self, parameters: Tensor, log_std: Tensor | None
    ) -> Categorical:
        """Returns a `Categorical` over n actions from logits `[B, n]`."""
        return Categorical(parameters)

    def _draw(
        self, generator: np.random.Generator, shape: tuple[int, ...], mask: Any
    ) -> npt.NDArray[Any]:
        """Draws from 0 ... n-1, before `start` is added: int32."""
        if mask is not None:
            return allowed_choice(mask, generator.random(mask.shape))
        return generator.integers(self.n, size=shape, dtype="int32")

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        return {"n": self.n, "start": self.start}
