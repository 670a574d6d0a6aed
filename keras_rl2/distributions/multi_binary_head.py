"""Several switches at once."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt

from keras_rl2.basics.shapes import Tensor
from keras_rl2.distributions.bernoulli import Bernoulli
from keras_rl2.distributions.policy_head import PolicyHead
from keras_rl2.distributions.standard_noise import StandardNoise


@keras.saving.register_keras_serializable(package="keras_rl2")
class MultiBinaryHead(PolicyHead):
    """Independent switches.

    Args:
        shape: Sequence of int, the shape of the environment's action; or int,
            the number of switches.

    Raises:
        ValueError: If there is no switch.

    Example:

    >>> head = MultiBinaryHead(2)
    >>> head([[-1.0, 1.0]]).mode().numpy().tolist()
    [[0, 1]]
    """

    def __init__(self, shape: int | Sequence[int]) -> None:
        self.shape = tuple(int(size) for size in np.atleast_1d(shape))
        switches = math.prod(self.shape)
        if switches < 1:
            raise ValueError(
                f"Expected at least one switch. Received: shape={shape}"
            )
        self.parameter_sizes = (switches,)
        self.noise = StandardNoise("logistic", switches)
        self.mask_size = switches
        self.action_shape = (switches,)
        self.changes_action = len(self.shape) != 1

    def _distribution(
        self, parameters: Tensor, log_std: Tensor | None
    ) -> Bernoulli:
        """Returns a `Bernoulli` from logits `[B, K]`."""
        return Bernoulli(parameters)

    def _draw(
        self, generator: np.random.Generator, shape: tuple[int, ...], mask: Any
    ) -> npt.NDArray[Any]:
        """Draws 0 or 1 for each switch: `[..., K]` int32."""
        drawn = generator.integers(2, size=shape, dtype="int32")
        return drawn if mask is None else drawn * (mask > 0)

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """None: all switches may be off."""
        return ()

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments as plain JSON."""
        return {"shape": list(self.shape)}
