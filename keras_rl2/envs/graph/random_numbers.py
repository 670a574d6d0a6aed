"""Random numbers as pure functions of a seed.

A seed is an array `[2]` of uint32. The same seed always gives the same numbers,
on every device, and no state is kept anywhere. Generators of TensorFlow and
Keras cannot be mapped over environments, or draw from a global state.
"""

import math
from collections.abc import Sequence

import numpy as np
from keras import ops

from keras_rl2.basics.shapes import Tensor

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
# Rounds of a permutation, by which neighbours are far apart.
_ROUNDS = 8
# Numbers of 24 bits are exact in float32.
_BITS = 24


def _rotated(x: Tensor, bits: int) -> Tensor:
    """Rotates the bits of uint32 to the left."""
    left = ops.left_shift(x, np.uint32(bits))
    return left | ops.right_shift(x, np.uint32(32 - bits))


def threefry(seed: Tensor, first: Tensor, second: Tensor) -> list[Tensor]:
    """Encrypts counters: Threefry-2x32 with 20 rounds.

    Args:
        seed: `[..., 2]` uint32. The key. Its leading axes broadcast with the
            counters.
        first: `[...]` uint32. First word of each counter.
        second: `[...]` uint32. Second word of each counter.

    Returns:
        list of two arrays `[...]` uint32.

    Example:

    >>> seed, zero = ops.zeros(2, "uint32"), ops.zeros((), "uint32")
    >>> [hex(int(each)) for each in threefry(seed, zero, zero)]
    ['0x6b200159', '0x99ba4efe']

    Reference:
        - [Salmon et al., 2011](https://doi.org/10.1145/2063384.2063405)
    """
    keys = [seed[..., 0], seed[..., 1]]
    keys.append(ops.bitwise_xor(ops.bitwise_xor(*keys), np.uint32(_PARITY)))
    x, y = first + keys[0], second + keys[1]
    for group in range(5):
        for bits in _ROTATIONS[group % 2]:
            x = x + y
            y = ops.bitwise_xor(_rotated(y, bits), x)
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + np.uint32(group + 1)
    return [x, y]


def fold_in(seed: Tensor, number: Tensor | int) -> Tensor:
    """Derives a seed from another one and a number.

    Args:
        seed: `[..., 2]` uint32.
        number: int, or `[...]` of ints that broadcast with the seeds. Different
            numbers give independent seeds.

    Returns:
        `[..., 2]` uint32.

    Example:

    >>> seed = ops.convert_to_tensor([0, 1], "uint32")
    >>> fold_in(seed, 0).shape
    TensorShape([2])
    """
    counter = ops.cast(number, "uint32")
    # Other counters than those of `split`, and of numbers.
    words = threefry(seed, counter, ops.full_like(counter, 2))
    return ops.stack(words, axis=-1)


def split(seed: Tensor, count: int) -> Tensor:
    """Derives several seeds from one.

    Args:
        seed: `[2]` uint32.
        count: int. Number of seeds, K.

    Returns:
        `[K, 2]` uint32.

    Example:

    >>> split(ops.convert_to_tensor([0, 1], "uint32"), 3).shape
    TensorShape([3, 2])
    """
    counter = ops.cast(ops.arange(count), "uint32")
    words = threefry(seed, counter, ops.ones_like(counter))
    return ops.stack(words, axis=-1)


def _bits(seed: Tensor, shape: Sequence[int]) -> Tensor:
    """Returns random bits, an array of uint32."""
    count = math.prod(shape)
    half = -(-count // 2)
    counter = ops.cast(ops.arange(half), "uint32")
    words = threefry(seed, counter, ops.zeros_like(counter))
    return ops.reshape(ops.concatenate(words)[:count], tuple(shape))


def uniform(
    seed: Tensor,
    shape: Sequence[int] = (),
    minval: float = 0.0,
    maxval: float = 1.0,
) -> Tensor:
    """Draws uniform numbers.

    Args:
        seed: `[2]` uint32.
        shape: Sequence of int. Defaults to `()`.
        minval: float. Smallest number. Defaults to `0.0`.
        maxval: float. Upper bound, which is not drawn itself unless a number
            is rounded to it. Defaults to `1.0`.

    Returns:
        `[*shape]` float32.

    Example:

    >>> drawn = uniform(ops.convert_to_tensor([0, 1], "uint32"), (1000,))
    >>> round(float(ops.mean(drawn)), 1)
    0.5
    """
    bits = ops.right_shift(_bits(seed, shape), np.uint32(32 - _BITS))
    # Of 24 bits, which int32 holds: XLA converts uint32 more slowly.
    fraction = ops.cast(ops.cast(bits, "int32"), "float32") * 2.0**-_BITS
    return fraction * (maxval - minval) + minval


def integers(
    seed: Tensor, shape: Sequence[int], minval: int, maxval: int
) -> Tensor:
    """Draws uniform integers.

    Args:
        seed: `[2]` uint32.
        shape: Sequence of int.
        minval: int. Smallest number.
        maxval: int. Above the largest number, by at most 65536 above
            `minval`, for all to be equally probable within 0.4 %.

    Returns:
        `[*shape]` int32.

    Example:

    >>> drawn = integers(ops.convert_to_tensor([0, 1], "uint32"), (99,), 2, 5)
    >>> sorted(set(drawn.numpy().tolist()))
    [2, 3, 4]
    """
    fraction = uniform(seed, shape)
    drawn = ops.cast(ops.floor(fraction * (maxval - minval)), "int32")
    return drawn + minval


def normal(seed: Tensor, shape: Sequence[int] = ()) -> Tensor:
    """Draws standard normal numbers.

    Args:
        seed: `[2]` uint32.
        shape: Sequence of int. Defaults to `()`.

    Returns:
        `[*shape]` float32.

    Example:

    >>> drawn = normal(ops.convert_to_tensor([0, 1], "uint32"), (1000,))
    >>> round(float(ops.std(drawn)), 1)
    1.0
    """
    # In the middle of each of the 2^24 intervals: neither -1 nor 1.
    fraction = uniform(seed, shape) + 2.0 ** -(_BITS + 1)
    return ops.erfinv(2.0 * fraction - 1.0) * math.sqrt(2.0)


def permutations(seed: Tensor, count: int, length: int) -> Tensor:
    """Draws random orders of the numbers below a length.

    A cipher maps each position to a number: sorting random numbers takes
    twenty times as long.

    Args:
        seed: `[2]` uint32.
        count: int. Number of orders, K.
        length: int. Length of each order, N, at most 2^31.

    Returns:
        `[K, N]` int32. Each row contains the numbers from 0 to N - 1 once.

    Example:

    >>> seed = ops.convert_to_tensor([0, 1], "uint32")
    >>> sorted(permutations(seed, 1, 5)[0].numpy().tolist())
    [0, 1, 2, 3, 4]

    Reference:
        - [Black and Rogaway, 2002](https://doi.org/10.1007/3-540-45760-7_9):
          a Feistel network, repeated for numbers beyond the length.
    """
    # Halves of the bits of a number.
    bits = max((length - 1).bit_length(), 2)
    low, high = bits // 2, bits - bits // 2
    masks = np.uint32(2**high - 1), np.uint32(2**low - 1)
    # [_ROUNDS, K, 1]
    keys = _bits(seed, (_ROUNDS, count, 1))

    def encrypted(number: Tensor) -> Tensor:
        halves = [ops.right_shift(number, np.uint32(low)), number & masks[1]]
        for turn in range(_ROUNDS):
            mine, other = turn % 2, 1 - turn % 2
            mixed = _mixed(halves[other] + keys[turn])
            halves[mine] = halves[mine] ^ (mixed & masks[mine])
        return ops.left_shift(halves[0], np.uint32(low)) | halves[1]

    position = ops.cast(ops.arange(length), "uint32")
    order = encrypted(ops.broadcast_to(position, (count, length)))
    if length < 2**bits:
        order = ops.while_loop(
            lambda order: ops.any(order >= np.uint32(length)),
            lambda order: (
                ops.where(order >= np.uint32(length), encrypted(order), order),
            ),
            (order,),
        )[0]
    return ops.cast(order, "int32")


def _mixed(x: Tensor) -> Tensor:
    """Mixes the bits of uint32, each into all others.

    Reference:
        - Wellons, 2018, "Prospecting for Hash Functions."
    """
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x = (x ^ ops.right_shift(x, np.uint32(shift))) * np.uint32(factor)
    return x ^ ops.right_shift(x, np.uint32(16))
