"""Several noises of a policy side by side."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_rl2.exploration.policy_noise import Drawn
from keras_rl2.exploration.policy_noise import PolicyNoise
from keras_rl2.exploration.policy_noise import Shape


class JoinedNoise(PolicyNoise):
    """Independent noises side by side, the state of each in a tuple.

    Args:
        noises: Sequence of `PolicyNoise`.

    Example:

    >>> from keras_rl2.exploration import AddedNoise, GaussianNoise
    >>> added = AddedNoise(GaussianNoise(0.1), size=2)
    >>> noise = JoinedNoise([added, AddedNoise(None, size=1)])
    >>> noise.draw(np.random.default_rng(0), (4,))[0].shape, noise.parts[1]
    ((4, 3), {'kind': 'zeros', 'size': 1})
    """

    def __init__(self, noises: Sequence[PolicyNoise]) -> None:
        self.noises = noises
        self.size = sum(each.size for each in noises)

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Descriptions of all parts, in their order."""
        return [part for each in self.noises for part in each.parts]

    def draw(
        self, generator: np.random.Generator, shape: Shape, state: Any = None
    ) -> Drawn:
        """Draws each noise, one after the other."""
        state = state or [None] * len(self.noises)
        drawn, after = zip(
            *(
                noise.draw(generator, shape, own)
                for noise, own in zip(self.noises, state, strict=True)
            ),
            strict=True,
        )
        return np.concatenate(drawn, axis=-1), after
