"""Initial weights of a network."""

from typing import Any

import keras

from keras_rl2.basics import seeds
from keras_rl2.basics.arguments import check_choice
from keras_rl2.basics.arguments import check_seed

KINDS = ("orthogonal", "fan_in")


class Initialization:
    """Makes initializers, each with its own seed.

    `"orthogonal"` is the usual choice for PPO and similar algorithms: hidden
    layers keep the norm of their input, biases are 0. `"fan_in"`, uniform
    within ±1/√fan_in, biases too, shrinks it layer by layer, so that values
    start near 0 and their first gradients are small: without that, learning
    values by bootstrapping at published step sizes diverges easily.

    Args:
        kind: str. One of `KINDS`.
        seed: int or None. Seed of all.

    Raises:
        ValueError: If the kind is not known.

    Example:

    >>> Initialization("fan_in", seed=0).kernel().scale
    0.3333333333333333

    Reference:
        - [Andrychowicz et al., 2021](https://arxiv.org/abs/2006.05990), for
          orthogonal weights.
        - [Lillicrap et al., 2015](https://arxiv.org/abs/1509.02971), section
          7, for uniform ones.
    """

    def __init__(self, kind: str, seed: int | None) -> None:
        check_choice(initialization=(kind, KINDS))
        check_seed(seed)
        self.kind = kind
        states = seeds.sequence(seed).generate_state(64)
        # One per layer, so that no two layers start alike.
        self._seeds = iter(int(state) for state in states)

    def next_seed(self) -> int:
        """Returns a new seed each time."""
        return next(self._seeds)

    def kernel(self, gain: float | None = None) -> Any:
        """Returns the initializer of a layer's weights.

        Args:
            gain: float or None. Gain of the last layer; None for a hidden one.
                Defaults to `None`.
        """
        if self.kind == "orthogonal":
            gain = 2.0**0.5 if gain is None else gain
            return keras.initializers.Orthogonal(gain, self.next_seed())
        gain = 1.0 if gain is None else gain
        return keras.initializers.VarianceScaling(
            gain**2 / 3.0, "fan_in", "uniform", self.next_seed()
        )

    def bias(self, fan_in: int) -> Any:
        """Returns the initializer of biases, given the number of inputs."""
        if self.kind == "orthogonal":
            return "zeros"
        bound = fan_in**-0.5
        return keras.initializers.RandomUniform(-bound, bound, self.next_seed())
