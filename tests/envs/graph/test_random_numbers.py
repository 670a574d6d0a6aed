"""Random numbers of a seed: published cases, moments, independence."""

import numpy as np
import pytest
from keras import ops

from keras_rl2.envs.graph import random_numbers

SEED = np.array([7, 8], np.uint32)
ALL = 0xFFFFFFFF
# Known answers of the authors' Random123, for 20 rounds.
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((ALL, ALL), (ALL, ALL), (0x1CB996FC, 0xBB002BE7)),
    (
        (0x13198A2E, 0x03707344),
        (0x243F6A88, 0x85A308D3),
        (0xC4923A9C, 0x483DF7A0),
    ),
]


@pytest.mark.parametrize(("key", "counter", "expected"), KNOWN)
def test_the_cipher_gives_published_numbers(key, counter, expected):
    words = random_numbers.threefry(
        np.array(key, np.uint32), *np.array(counter, np.uint32)
    )
    assert tuple(int(each) for each in words) == expected


def test_numbers_are_uniform():
    drawn = np.asarray(random_numbers.uniform(SEED, (100_000,), 2.0, 4.0))
    assert 2.0 <= drawn.min() < drawn.max() < 4.0
    counts, _ = np.histogram(drawn, bins=20, range=(2.0, 4.0))
    assert counts == pytest.approx(np.full(20, 5000), abs=300)
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.01


def test_normal_numbers_have_their_moments():
    drawn = np.asarray(random_numbers.normal(SEED, (100_000,)), np.float64)
    assert np.isfinite(drawn).all()
    moments = [(drawn**power).mean() for power in (1, 2, 3, 4)]
    assert moments == pytest.approx([0.0, 1.0, 0.0, 3.0], abs=0.1)


def test_integers_are_equally_frequent():
    drawn = np.asarray(random_numbers.integers(SEED, (30_000,), -1, 2))
    assert np.bincount(drawn + 1) == pytest.approx([10_000] * 3, rel=0.05)


def test_seeds_that_are_derived_differ():
    seeds = [
        *np.asarray(random_numbers.split(SEED, 100)).tolist(),
        *(
            np.asarray(random_numbers.fold_in(SEED, number)).tolist()
            for number in range(200, 220)
        ),
    ]
    assert len({tuple(each) for each in seeds}) == 120
    first, second = (
        np.asarray(random_numbers.uniform(ops.cast(each, "uint32"), (9999,)))
        for each in seeds[:2]
    )
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03


def test_permutations_are_random():
    for length in (1, 2, 3, 28, 64, 1000):
        orders = np.asarray(random_numbers.permutations(SEED, 20, length))
        assert orders.dtype == np.int32
        assert (np.sort(orders, axis=1) == np.arange(length)).all()
    orders = np.asarray(random_numbers.permutations(SEED, 9000, 9))
    # Each number as often in each place, and beside each other one.
    for place in range(9):
        counts = np.bincount(orders[:, place], minlength=9)
        assert counts == pytest.approx([1000] * 9, abs=130)
    pairs = np.zeros((9, 9))
    np.add.at(pairs, (orders[:, 3], orders[:, 4]), 1)
    apart = pairs[~np.eye(9, dtype=bool)]
    assert apart == pytest.approx(np.full(72, 125.0), abs=50)
