import numpy as np
import pytest
import tensorflow as tf

from keras_rl2.distributions import DiagonalGaussian
from keras_rl2.distributions import SquashedGaussian


def test_one_log_std_for_all_equals_the_same_in_every_row():
    rng = np.random.default_rng(0)
    mean, action, draws = rng.standard_normal((3, 5, 2))
    log_std = np.array([0.5, -1.0])
    shared = DiagonalGaussian(mean, log_std)
    spelled_out = DiagonalGaussian(mean, np.tile(log_std, (5, 1)))
    for one, other in (
        (shared.log_prob(action), spelled_out.log_prob(action)),
        (shared.entropy(), spelled_out.entropy()),
        (shared.sample(draws), spelled_out.sample(draws)),
        (shared.kl(spelled_out), spelled_out.kl(shared)),
    ):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("shape", [(1,), (3,), (5, 1), (1, 2), (5,), ()])
def test_log_std_is_never_broadcast(shape):
    with pytest.raises(ValueError, match="log_std"):
        DiagonalGaussian(np.zeros((5, 2)), np.zeros(shape))


def test_sample_is_reparameterised():
    log_std = tf.constant([[0.5]])
    mean = tf.constant([[1.0]])
    with tf.GradientTape() as tape:
        tape.watch([mean, log_std])
        action = DiagonalGaussian(mean, log_std).sample([[2.0]])
    slopes = tape.gradient(action, [mean, log_std])
    np.testing.assert_allclose(slopes[0], [[1.0]])
    np.testing.assert_allclose(slopes[1], [[2.0 * np.exp(0.5)]], rtol=1e-6)


@pytest.mark.parametrize(
    ("mean", "log_std"), [(0.0, 0.0), (1.5, -1.0), (-3.0, 0.5), (0.2, 1.0)]
)
def test_squashed_density_integrates_to_1(mean, log_std):
    # Denser towards the bounds, where the density can peak.
    grid = np.tanh(np.linspace(-14.0, 14.0, 20_001))[:, None]
    policy = SquashedGaussian(
        np.full_like(grid, mean), np.full_like(grid, log_std)
    )
    density = np.exp(policy.log_prob(grid))
    integral = np.trapezoid(density, grid[:, 0])
    assert abs(integral - 1.0) < 1e-3


@pytest.mark.parametrize(
    ("log_std", "tolerance"),
    [(-3.0, 1e-6), (0.0, 1e-6), (0.69, 1e-5), (1.6, 1e-3), (2.0, 1e-2)],
)
def test_squashed_entropy_is_precise(log_std, tolerance):
    nodes = np.linspace(-10.0, 10.0, 200_001)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    mean = np.array([[-4.0, -0.7, 0.0, 2.0]]).T
    position = mean + np.exp(log_std) * nodes
    slope = 2 * (np.log(2) - position - np.logaddexp(0, -2 * position))
    base = log_std + 0.5 * np.log(2 * np.pi * np.e)
    expected = base + slope @ weights
    policy = SquashedGaussian(mean, np.full_like(mean, log_std))
    np.testing.assert_allclose(policy.entropy(), expected, atol=tolerance)


def test_own_samples_have_exact_log_prob_at_the_bounds():
    # tanh(12) is 1 in float32: the action says nothing about the noise.
    policy = SquashedGaussian(np.float32([[12.0]]), np.float32([[0.0]]))
    action, log_prob = policy.sample_and_log_prob(np.float32([[0.0]]))
    assert float(action[0, 0]) == 1.0
    expected = -0.5 * np.log(2 * np.pi) - 2 * (np.log(2) - 12.0)
    np.testing.assert_allclose(log_prob, [expected], rtol=1e-6)


def test_actions_on_the_bounds_have_a_finite_log_prob():
    policy = SquashedGaussian(np.zeros((3, 1)), np.zeros((3, 1)))
    log_prob = policy.log_prob(np.array([[-1.0], [1.0], [7.0]]))
    assert np.all(np.isfinite(log_prob))


def test_kl_is_that_of_the_base():
    zeros, ones = np.zeros((1, 2)), np.ones((1, 2))
    np.testing.assert_allclose(
        SquashedGaussian(zeros, zeros).kl(SquashedGaussian(ones, zeros)), [1.0]
    )
