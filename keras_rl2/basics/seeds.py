"""Seeds where none is given: those of Keras' global seed.

A layer of Keras without a seed draws one from Python's `random`, which
`keras.utils.set_random_seed` seeds. What is made here without a seed does the
same, so that one call repeats a whole program.

Example:

>>> import random
>>> random.seed(5)  # keras.utils.set_random_seed(5) does it, and more.
>>> first = generator(None).integers(1000, size=3)
>>> random.seed(5)
>>> bool((first == generator(None).integers(1000, size=3)).all())
True
"""

import random

import numpy as np


def or_drawn(seed: int | None) -> int:
    """Returns a seed, drawn from Python's `random` where there is none.

    Args:
        seed: int or None.

    Returns:
        int, at least 0. What is drawn has 31 bits, as environments take them.

    Example:

    >>> or_drawn(7)
    7
    """
    return random.getrandbits(31) if seed is None else int(seed)


def sequence(seed: int | None) -> np.random.SeedSequence:
    """Returns what any number of seeds are made of.

    Args:
        seed: int or None.

    Returns:
        `np.random.SeedSequence`.
    """
    if seed is None:
        return np.random.SeedSequence(random.getrandbits(128))
    return np.random.SeedSequence(seed)


def generator(seed: int | None) -> np.random.Generator:
    """Returns what draws random numbers.

    Args:
        seed: int or None.

    Returns:
        `np.random.Generator`.
    """
    return np.random.default_rng(sequence(seed))
