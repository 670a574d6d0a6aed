"""A masked distribution is the distribution over the allowed actions."""

import numpy as np
import pytest
import tensorflow as tf

from keras_rl2.distributions import Bernoulli
from keras_rl2.distributions import Categorical
from keras_rl2.distributions import MultiCategorical
from keras_rl2.distributions import forbid
from keras_rl2.distributions.bernoulli import logistic
from keras_rl2.distributions.categorical import gumbel
from keras_rl2.losses import expected_soft_value

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(6, 5))
OTHER = RNG.normal(size=(6, 5))
#: At least one action each; in the last row all of them.
MASK = np.array(
    [
        [1, 0, 1, 1, 0],
        [0, 1, 0, 0, 1],
        [1, 0, 0, 0, 0],
        [0, 0, 0, 1, 1],
        [0, 1, 1, 1, 1],
        [1, 1, 1, 1, 1],
    ],
    np.int8,
)
ALLOWED = MASK > 0


def masked(logits=LOGITS, mask=MASK):
    return Categorical(forbid(logits, mask))


def alone(row, logits=LOGITS):
    """Returns the Categorical over the allowed actions of one row."""
    return Categorical(logits[row][ALLOWED[row]][None])


def test_by_hand():
    """The mask allows the first and the third of e^0, e^1, e^2 and e^3."""
    policy = Categorical(forbid([[0.0, 1.0, np.log(3.0), 3.0]], [[1, 0, 1, 0]]))
    np.testing.assert_allclose(
        np.exp(policy.log_probs), [[0.25, 0.0, 0.75, 0.0]], rtol=1e-6
    )
    np.testing.assert_allclose(policy.log_prob([2]), np.log(0.75), rtol=1e-6)
    np.testing.assert_allclose(policy.entropy(), [0.5623351446], rtol=1e-6)
    even = Categorical(forbid([[0.0, 9.0, 0.0, 9.0]], [[1, 0, 1, 0]]))
    expected = 0.25 * np.log(0.5) + 0.75 * np.log(1.5)
    np.testing.assert_allclose(policy.kl(even), [expected], rtol=1e-5)
    assert policy.mode().numpy().tolist() == [2]


def test_probabilities_are_those_of_the_allowed_actions():
    probabilities = np.exp(masked().log_probs)
    # Exactly: nothing is to be left of them, not even little.
    assert (probabilities[~ALLOWED] == 0.0).all()
    for row in range(len(MASK)):
        np.testing.assert_allclose(
            probabilities[row][ALLOWED[row]],
            np.exp(alone(row).log_probs)[0],
            rtol=1e-6,
        )


def test_log_probs_and_gradients_are_those_of_the_allowed_actions():
    logits = tf.constant(LOGITS)
    action = ALLOWED.argmax(axis=1)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        policy = Categorical(forbid(logits, MASK))
        log_prob = policy.log_prob(action)
        total = tf.reduce_sum(
            2.0 * log_prob + policy.entropy() + policy.kl(masked(OTHER))
        )
    gradient = tape.gradient(total, logits).numpy()
    assert (gradient[~ALLOWED] == 0.0).all()
    for row in range(len(MASK)):
        own = tf.constant(LOGITS[row][ALLOWED[row]][None])
        with tf.GradientTape() as tape:
            tape.watch(own)
            one = Categorical(own)
            # The first of those that are left.
            total = 2.0 * one.log_prob([0]) + one.entropy()
            total = tf.reduce_sum(total + one.kl(alone(row, OTHER)))
        np.testing.assert_allclose(log_prob[row], one.log_prob([0])[0], 1e-6)
        np.testing.assert_allclose(
            gradient[row][ALLOWED[row]],
            tape.gradient(total, own)[0],
            rtol=1e-5,
            atol=1e-7,
        )


def test_no_noise_selects_a_forbidden_action():
    count = 20_000
    logits = np.tile([[-50.0, 1e6, 0.0, 1e6, -50.0]], (count, 1))
    mask = np.tile([[1, 0, 1, 0, 1]], (count, 1))
    policy = Categorical(forbid(logits, mask))
    draws = gumbel(np.random.default_rng(0), (count, 5))
    assert {0, 2, 4} >= set(policy.sample(draws).numpy().tolist())
    # As noise of somebody's own would be, which forces an action.
    draws[:, 1] = 1e30
    assert 1 not in policy.sample(draws).numpy()


@pytest.mark.parametrize(
    ("dtype", "precision"),
    [
        ("int8", "float16"),
        ("bool", "bfloat16"),
        ("float32", "float32"),
        ("int64", "float32"),
    ],
)
def test_masks_of_any_dtype_and_logits_of_any_precision(dtype, precision):
    logits = tf.cast(LOGITS, precision)
    result = forbid(logits, MASK.astype(dtype))
    assert result.dtype == "float32"
    np.testing.assert_array_equal(
        np.array(result)[ALLOWED], np.array(tf.cast(logits, "float32"))[ALLOWED]
    )
    assert (np.array(result)[~ALLOWED] < -1e30).all()


def test_rows_without_any_allowed_action_are_finite():
    """A terminal observation's, say: nobody acts on it, but it is computed."""
    mask = MASK.copy()
    mask[::2] = 0
    logits = tf.constant(LOGITS, "float32")
    with tf.GradientTape() as tape:
        tape.watch(logits)
        policy = Categorical(forbid(logits, mask))
        results = (
            policy.log_prob([0] * 6),
            policy.entropy(),
            policy.kl(masked(OTHER.astype("float32"))),
            masked(OTHER.astype("float32")).kl(policy),
            policy.log_probs,
        )
        total = tf.add_n([tf.reduce_sum(each) for each in results[:2]])
    for each in (*results, tape.gradient(total, logits)):
        assert np.isfinite(each).all()


@pytest.mark.parametrize("temperature", [0.1, 1.0, 1e4])
def test_soft_values_are_those_of_the_allowed_actions(temperature):
    """A high temperature gives no 0 times infinity."""
    values = RNG.normal(size=(6, 5)).astype("float32")
    logits = tf.constant(LOGITS, "float32")
    with tf.GradientTape() as tape:
        tape.watch(logits)
        policy = Categorical(forbid(logits, MASK))
        value = expected_soft_value(policy.log_probs, [values], temperature)
    gradient = tape.gradient(value, logits).numpy()
    assert np.isfinite(gradient).all()
    assert (gradient[~ALLOWED] == 0.0).all()
    for row in range(len(MASK)):
        log_probs = alone(row).log_probs
        own = values[row][ALLOWED[row]][None]
        np.testing.assert_allclose(
            value[row],
            expected_soft_value(log_probs, [own], temperature)[0],
            rtol=1e-5,
        )


def test_choices_are_masked_one_by_one():
    sizes = (2, 3)
    mask = [[1, 0, 0, 1, 1]]
    logits = LOGITS[:1]
    policy = MultiCategorical(forbid(logits, mask), sizes)
    first, second = Categorical(logits[:, :1]), Categorical(logits[:, 3:])
    np.testing.assert_allclose(
        policy.log_prob([[0, 2]]), second.log_prob([1]), rtol=1e-6
    )
    np.testing.assert_allclose(
        policy.entropy(), first.entropy() + second.entropy(), rtol=1e-6
    )
    draws = gumbel(np.random.default_rng(0), (500, 5))
    many = MultiCategorical(
        forbid(np.tile(logits, (500, 1)), np.tile(mask, (500, 1))), sizes
    )
    assert {(0, 1), (0, 2)} == {*map(tuple, many.sample(draws).numpy())}


def test_switches_that_are_forbidden_stay_off():
    logits, mask = np.array([[2.0, 50.0, -1.0]]), [[1, 0, 1]]
    policy = Bernoulli(forbid(logits, mask))
    left = Bernoulli(logits[:, ::2])
    np.testing.assert_allclose(
        policy.log_prob([[1, 0, 0]]), left.log_prob([[1, 0]]), rtol=1e-6
    )
    np.testing.assert_allclose(policy.entropy(), left.entropy(), rtol=1e-6)
    other = Bernoulli(forbid(np.zeros((1, 3)), mask))
    np.testing.assert_allclose(
        policy.kl(other), left.kl(Bernoulli(np.zeros((1, 2)))), rtol=1e-6
    )
    assert policy.mode().numpy().tolist() == [[1, 0, 0]]
    draws = logistic(np.random.default_rng(0), (500, 3))
    many = Bernoulli(forbid(np.tile(logits, (500, 1)), np.tile(mask, (500, 1))))
    sample = many.sample(draws).numpy()
    assert sample[:, 1].max() == 0
    assert sample[:, 0].max() == sample[:, 2].max() == 1


def test_several_forbidden_switches_have_finite_results():
    logits = LOGITS.astype("float32")
    policy = Bernoulli(forbid(logits, np.zeros_like(MASK)))
    for each in (
        policy.log_prob(np.zeros((6, 5), int)),
        policy.entropy(),
        policy.kl(Bernoulli(logits)),
        Bernoulli(logits).kl(policy),
    ):
        assert np.isfinite(each).all()


def test_a_mask_of_another_shape():
    with pytest.raises(ValueError, match=r"mask.*Received|Received.*mask"):
        forbid(LOGITS, MASK[:, :4])
