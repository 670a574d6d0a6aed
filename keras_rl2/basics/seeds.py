"""Default seeds: drawn under Keras' global seed.

A layer of Keras without a seed draws one from Python's `random`, which
`keras.utils.set_random_seed` seeds. Objects of this library without a seed do
the same, so that one call makes a whole program repeatable.

Example:

>>> import random
>>> random.seed(5)  # keras.utils.set_random_seed(5) does it, and more.
>>> first = generator(None).integers(1000, size=3)
>>> random.seed(5)
>>> bool((first == generator(None).integers(1000, size=3)).all())
True
"""

import random
from collections.abc import Sequence
from typing import cast

import numpy as np


def or_drawn(seed: int | None) -> int:
    """Returns a seed, drawn from Python's `random` if it is None.

    Example:

    >>> or_drawn(7)
    7
    """
    return random.getrandbits(31) if seed is None else int(seed)


def sequence(seed: int | Sequence[int] | None) -> np.random.SeedSequence:
    """Returns a sequence from which any number of seeds is made."""
    entropy = random.getrandbits(128) if seed is None else seed
    return np.random.SeedSequence(entropy)


def several(seed: int | Sequence[int] | None, count: int) -> list[int]:
    """Returns as many seeds, made from one."""
    return cast(list[int], sequence(seed).generate_state(count).tolist())


def generator(seed: int | None) -> np.random.Generator:
    """Returns a generator of random numbers."""
    return np.random.default_rng(sequence(seed))
