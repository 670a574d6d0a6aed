"""Several distributions as one: sums by hand, and samples."""

import numpy as np
import pytest

from keras_rl2.distributions import Bernoulli
from keras_rl2.distributions import Categorical
from keras_rl2.distributions import Composite
from keras_rl2.distributions import DiagonalGaussian
from keras_rl2.distributions import MultiCategorical
from keras_rl2.distributions.bernoulli import logistic
from keras_rl2.distributions.categorical import gumbel
from keras_rl2.distributions.gaussian import normal

#: Of one choice of three, one number, two switches and two choices.
SIZES = {
    "action_sizes": (1, 1, 2, 2),
    "noise_sizes": (3, 1, 2, 5),
}
PROBABILITIES = np.array([0.2, 0.3, 0.5])
CHANCES = np.array([0.25, 0.9])


def parts(count=1, mean=0.5, std=2.0):
    """Makes the four parts of `SIZES`, `count` times each."""

    def rows(*numbers):
        return np.tile(np.array([numbers]), (count, 1))

    return [
        Categorical(np.log(rows(*PROBABILITIES))),
        DiagonalGaussian(rows(mean), np.log(rows(std))),
        Bernoulli(np.log(rows(*(CHANCES / (1 - CHANCES))))),
        MultiCategorical(np.log(rows(0.5, 0.5, 0.1, 0.2, 0.7)), (2, 3)),
    ]


def composite(count=1, **settings):
    return Composite(parts(count, **settings), **SIZES)


def draw(count):
    generator = np.random.default_rng(0)
    drawn = (
        gumbel(generator, (count, 3)),
        normal(generator, (count, 1)),
        logistic(generator, (count, 2)),
        gumbel(generator, (count, 5)),
    )
    return np.concatenate(drawn, axis=-1)


def test_log_prob_is_the_sum_by_hand():
    # Gear 2; the number 1.5, half a deviation off; on and off; 1 and 0.
    action = [[2.0, 1.5, 1.0, 0.0, 1.0, 0.0]]
    density = np.exp(-0.125) / (2.0 * np.sqrt(2.0 * np.pi))
    expected = np.log(0.5 * density * 0.25 * 0.1 * 0.5 * 0.1)
    np.testing.assert_allclose(
        composite().log_prob(action), [expected], rtol=1e-6
    )


def test_the_mode_is_that_of_each_part():
    assert composite().mode().dtype == "float32"
    np.testing.assert_allclose(
        composite().mode(), [[2.0, 0.5, 0.0, 1.0, 0.0, 2.0]]
    )


def test_each_part_is_sampled_as_a_distribution_of_its_own():
    count, draws = 50, draw(50)
    sample = composite(count).sample(draws).numpy()
    assert sample.shape == (50, 6)
    pieces = np.split(draws, np.cumsum(SIZES["noise_sizes"])[:-1], axis=1)
    columns = np.split(sample, np.cumsum(SIZES["action_sizes"])[:-1], axis=1)
    for part, piece, column in zip(parts(count), pieces, columns, strict=True):
        expected = np.reshape(part.sample(piece), (count, -1))
        np.testing.assert_allclose(column, expected, rtol=1e-6)


def test_integers_survive_as_floats():
    policy = Composite([Categorical(np.zeros((1, 70_000)))], (1,), (70_000,))
    draws = np.zeros((1, 70_000), "float32")
    draws[0, 69_999] = 5.0
    action = policy.sample(draws)
    assert action.numpy().tolist() == [[69_999.0]]
    np.testing.assert_allclose(
        policy.log_prob(action), [-np.log(70_000)], rtol=1e-6
    )


def test_a_composite_requires_a_part():
    with pytest.raises(ValueError, match=r"at least one part.*Received: 0"):
        Composite([], (), ())


def test_divergence_from_something_else():
    policy = composite()
    with pytest.raises(ValueError, match="another Composite"):
        policy.kl(parts()[0])
    shorter = Composite(parts()[:1], (1,), (3,))
    with pytest.raises(ValueError, match=r"4 parts\. Received: 1"):
        policy.kl(shorter)
