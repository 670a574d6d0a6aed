import numpy as np
import pytest
import tensorflow as tf

from keras_rl2 import losses
from support.gradients import gradient

ATOMS = np.linspace(-10.0, 10.0, 51)
UNEVEN = np.array([-3.0, -1.0, -0.9, 0.0, 4.0])


def shifted(low, high, batch=32, atoms=51, dtype="float64"):
    """Return atoms drawn between two numbers, unsorted, and their masses."""
    rng = np.random.default_rng(0)
    support = rng.uniform(low, high, (batch, atoms))
    masses = rng.dirichlet(np.ones(atoms), batch)
    return support.astype(dtype), masses.astype(dtype)


def projection_by_loop(support, masses, atoms):
    """Share each mass between its two neighbours, one at a time."""
    result = np.zeros((len(support), len(atoms)))
    for row, (places, weights) in enumerate(zip(support, masses, strict=True)):
        for place, weight in zip(places, weights, strict=True):
            inside = np.clip(place, atoms[0], atoms[-1])
            above = min(np.searchsorted(atoms, inside), len(atoms) - 1)
            below = max(above - 1, 0)
            gap = atoms[above] - atoms[below]
            share = (inside - atoms[below]) / gap if gap else 1.0
            result[row, above] += weight * share
            result[row, below] += weight * (1.0 - share)
    return result


@pytest.mark.parametrize("atoms", [ATOMS, UNEVEN], ids=["even", "uneven"])
def test_projection_by_loop(atoms):
    support, masses = shifted(-15.0, 15.0)
    np.testing.assert_allclose(
        losses.categorical_projection(support, masses, atoms),
        projection_by_loop(support, masses, atoms),
        atol=1e-12,
    )


@pytest.mark.parametrize("atoms", [ATOMS, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize(
    ("dtype", "atol"), [("float32", 2e-6), ("float64", 1e-13)]
)
def test_projection_keeps_the_mass_and_unclipped_the_mean(atoms, dtype, atol):
    support, masses = shifted(-30.0, 30.0, dtype=dtype)
    projected = losses.categorical_projection(support, masses, atoms).numpy()
    assert projected.dtype == dtype
    assert projected.min() >= 0.0
    np.testing.assert_allclose(projected.sum(axis=-1), 1.0, atol=atol)

    support, masses = shifted(atoms[0], atoms[-1], dtype=dtype)
    projected = losses.categorical_projection(support, masses, atoms)
    before = np.sum(support * masses, axis=-1)
    after = np.sum(projected * atoms, axis=-1)
    np.testing.assert_allclose(after, before, atol=20.0 * atol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("atoms", [ATOMS, UNEVEN], ids=["even", "uneven"])
def test_mass_on_a_target_atom_stays_whole(atoms, dtype):
    masses = shifted(0.0, 1.0, atoms=len(atoms), dtype=dtype)[1]
    order = np.random.default_rng(1).permutation(len(atoms))
    support = np.tile(atoms[order], (len(masses), 1)).astype(dtype)
    projected = losses.categorical_projection(support, masses[:, order], atoms)
    np.testing.assert_array_equal(projected, masses)


def test_a_single_atom_takes_everything():
    support, masses = shifted(-1.0, 1.0, batch=2)
    projected = losses.categorical_projection(support, masses, [0.5])
    np.testing.assert_allclose(projected, np.ones((2, 1)))


def test_the_projection_is_a_constant_and_pulls_the_logits_to_it():
    masses = np.array([[0.1, 0.2, 0.7]])

    def cross_entropy(logits):
        own = tf.nn.softmax(logits)
        target = losses.categorical_projection(
            [[0.0, 1.0, 2.0]], masses + 0.0 * own, [0.0, 1.0, 2.0]
        )
        return -tf.reduce_sum(target * tf.nn.log_softmax(logits), axis=-1)

    slope = gradient(cross_entropy, np.zeros((1, 3)))
    np.testing.assert_allclose(slope, 1.0 / 3.0 - masses, rtol=1e-12)
    held = gradient(
        lambda p: losses.categorical_projection([[0.2]], p, [0.0, 1.0]), [[1.0]]
    )
    assert not np.any(held)


def test_projection_refuses_unsorted_atoms_and_unequal_shapes():
    for atoms in ([1.0, 0.0], [0.0, 0.0], []):
        with pytest.raises(ValueError, match="Expected increasing target_sup"):
            losses.categorical_projection([[0.0]], [[1.0]], atoms)
    with pytest.raises(ValueError, match="Expected equal shapes"):
        losses.categorical_projection(
            np.ones((3, 1)), np.ones((3, 2)), [0.0, 1.0]
        )


def test_quantile_huber_by_loop():
    rng = np.random.default_rng(0)
    quantiles, taus = rng.standard_normal((2, 6, 5))
    targets = 2.0 * rng.standard_normal((6, 7))
    taus = 1.0 / (1.0 + np.exp(-taus))
    expected = np.zeros(6)
    for b in range(6):
        for i in range(5):
            for y in targets[b]:
                error = y - quantiles[b, i]
                weight = 1.0 - taus[b, i] if error < 0 else taus[b, i]
                expected[b] += weight * losses.huber([error], 0.7)[0] / 7.0
    loss = losses.quantile_huber(quantiles, taus, targets, 0.7)
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_each_quantile_is_pulled_to_its_side():
    def slope(targets):
        return gradient(
            lambda q: losses.quantile_huber(q, [0.25, 0.75], targets),
            np.zeros((1, 2)),
        ).tolist()

    assert slope([[9.0]]) == [[-0.25, -0.75]]
    assert slope([[-9.0]]) == [[0.75, 0.25]]


def test_quantiles_are_fitted():
    grid = np.linspace(0.0, 2.0, 101)
    sample = np.random.default_rng(0).standard_normal(20_000)
    loss = losses.quantile_huber(
        grid[:, None], [0.9], np.tile(sample, (101, 1)), 0.05
    )
    # The 0.9 quantile of the standard normal distribution.
    assert abs(grid[np.argmin(loss)] - 1.2816) < 0.04


def test_quantile_huber_refuses_unequal_shapes():
    wide, flat, column = np.ones((3, 2)), np.ones(3), np.ones((3, 1))
    with pytest.raises(ValueError, match="Expected rank 2 for targets"):
        losses.quantile_huber(wide, wide, flat)
    with pytest.raises(ValueError, match=r"Expected shape \[3, \?\] for targ"):
        losses.quantile_huber(wide, wide, np.ones((1, 2)))
    with pytest.raises(ValueError, match=r"Expected shape \[3, 2\] for taus"):
        losses.quantile_huber(wide, column, wide)
    with pytest.raises(ValueError, match=r"Expected shape \[2\] for taus"):
        losses.quantile_huber(wide, flat, wide)
