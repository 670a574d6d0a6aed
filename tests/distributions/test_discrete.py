import numpy as np
import pytest

from keras_rl2.distributions import Bernoulli
from keras_rl2.distributions import Categorical
from keras_rl2.distributions import MultiCategorical
from keras_rl2.distributions.bernoulli import logistic
from keras_rl2.distributions.categorical import gumbel
from keras_rl2.distributions.gaussian import normal


def test_categorical_frequencies_match_the_probabilities():
    count, probabilities = 100_000, np.array([0.5, 0.2, 0.3])
    policy = Categorical(np.tile(np.log(probabilities), (count, 1)))
    draws = gumbel(np.random.default_rng(0), (count, 3))
    frequencies = np.bincount(policy.sample(draws), minlength=3) / count
    np.testing.assert_allclose(frequencies, probabilities, atol=0.005)


def test_bernoulli_frequencies_match_the_probabilities():
    count, probabilities = 100_000, np.array([0.05, 0.5, 0.9])
    logits = np.log(probabilities / (1 - probabilities))
    policy = Bernoulli(np.tile(logits, (count, 1)))
    draws = logistic(np.random.default_rng(0), (count, 3))
    frequencies = np.mean(policy.sample(draws), axis=0)
    np.testing.assert_allclose(frequencies, probabilities, atol=0.005)


def test_categorical_by_hand():
    policy = Categorical(np.log([[0.25, 0.75], [0.5, 0.5]]))
    np.testing.assert_allclose(
        policy.log_prob([1, 0]), np.log([0.75, 0.5]), rtol=1e-12
    )
    np.testing.assert_allclose(
        policy.entropy(), [0.5623351446188083, np.log(2)], rtol=1e-12
    )


def test_of_equal_logits_the_first_is_the_mode():
    assert Categorical(np.zeros((2, 4))).mode().numpy().tolist() == [0, 0]
    assert Bernoulli(np.zeros((1, 2))).mode().numpy().tolist() == [[0, 0]]


def test_multi_categorical_is_the_sum_of_its_choices():
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((5, 6))
    parts = Categorical(logits[:, :2]), Categorical(logits[:, 2:])
    policy = MultiCategorical(logits, (2, 4))
    action = np.stack([rng.integers(0, 2, 5), rng.integers(0, 4, 5)], axis=1)
    np.testing.assert_allclose(
        policy.log_prob(action),
        sum(part.log_prob(action[:, k]) for k, part in enumerate(parts)),
    )
    draws = gumbel(rng, (5, 6))
    sample = policy.sample(draws).numpy()
    np.testing.assert_array_equal(sample[:, 0], parts[0].sample(draws[:, :2]))
    np.testing.assert_array_equal(sample[:, 1], parts[1].sample(draws[:, 2:]))


def test_sizes_must_add_up():
    logits = np.zeros((1, 6))
    for sizes in ((), (2, 3), (7,), (6, 0)):
        with pytest.raises(ValueError, match="Expected sizes"):
            MultiCategorical(logits, sizes)
    with pytest.raises(ValueError, match="Expected equal shapes"):
        MultiCategorical(logits, (2, 4)).kl(MultiCategorical(logits, (3, 3)))


def test_bernoulli_by_hand():
    policy = Bernoulli(np.log([[3.0, 1.0]]))
    np.testing.assert_allclose(
        policy.log_prob([[0, 1]]), [np.log(0.25 * 0.5)], rtol=1e-12
    )
    np.testing.assert_allclose(
        policy.kl(Bernoulli(np.zeros((1, 2)))),
        [0.75 * np.log(1.5) + 0.25 * np.log(0.5)],
    )


@pytest.mark.parametrize("draw", [gumbel, logistic])
def test_noise_is_finite_even_where_the_draw_is_0(draw):
    class Zeros:
        def standard_exponential(self, shape, dtype):
            return np.zeros(shape, dtype)

        random = standard_exponential

    draws = draw(Zeros(), (3,))
    assert draws.dtype == "float32"
    assert np.all(np.isfinite(draws))


@pytest.mark.parametrize(
    ("draw", "mean", "variance"),
    [
        (gumbel, 0.5772, np.pi**2 / 6),
        (logistic, 0.0, np.pi**2 / 3),
        (normal, 0.0, 1.0),
    ],
)
def test_noise_has_its_moments(draw, mean, variance):
    rng = np.random.default_rng(0)
    draws = draw(rng, (400, 500))
    assert draws.dtype == "float32"
    np.testing.assert_allclose(draws.mean(), mean, atol=0.02)
    np.testing.assert_allclose(draws.var(), variance, rtol=0.02)
