"""The contract of every distribution."""

import numpy as np
import pytest
import tensorflow as tf

from keras_rl2.distributions import Bernoulli
from keras_rl2.distributions import Categorical
from keras_rl2.distributions import Composite
from keras_rl2.distributions import DiagonalGaussian
from keras_rl2.distributions import MultiCategorical
from keras_rl2.distributions import SquashedGaussian
from keras_rl2.distributions.bernoulli import logistic
from keras_rl2.distributions.categorical import gumbel
from keras_rl2.distributions.gaussian import normal
from support.agents import slow


def gaussian(parameters):
    """Return a Gaussian whose standard deviations depend on the state."""
    return DiagonalGaussian(parameters[:, :3], parameters[:, 3:])


def squashed(parameters):
    """Return the same, squashed into the unit box."""
    return SquashedGaussian(parameters[:, :3], parameters[:, 3:])


def composite(parameters):
    """Return one of a choice of two, a number and a switch."""
    parts = [
        Categorical(parameters[:, :2]),
        DiagonalGaussian(parameters[:, 2:3], parameters[:, 3:4]),
        Bernoulli(parameters[:, 4:5]),
    ]
    return Composite(parts, (1, 1, 1), (2, 1, 1))


def noise_of_parts(generator, shape):
    """Return the noise of all parts side by side."""
    rows = shape[0]
    parts = gumbel(generator, (rows, 2)), normal(generator, (rows, 1))
    return np.concatenate([*parts, logistic(generator, (rows, 1))], axis=-1)


MAKE = {
    "Categorical": (Categorical, 6, gumbel),
    "MultiCategorical": (
        lambda logits: MultiCategorical(logits, (2, 1, 3)),
        6,
        gumbel,
    ),
    "Bernoulli": (Bernoulli, 6, logistic),
    "DiagonalGaussian": (gaussian, 6, normal),
    "SquashedGaussian": (squashed, 6, normal),
    "Composite": (composite, 6, noise_of_parts),
}
NOISE_WIDTH = dict.fromkeys(MAKE, 6) | {
    "DiagonalGaussian": 3,
    "SquashedGaussian": 3,
    "Composite": 4,
}
DISCRETE = ("Categorical", "MultiCategorical", "Bernoulli")
EVERY = pytest.mark.parametrize("name", MAKE)


def make(name, seed=0, batch=4, dtype="float64", scale=1.0):
    """Return a distribution and fitting noise."""
    function, width, draw = MAKE[name]
    rng = np.random.default_rng(seed)
    parameters = scale * rng.standard_normal((batch, width))
    return (
        function(tf.cast(parameters, dtype)),
        draw(rng, (batch, NOISE_WIDTH[name])),
    )


def many(name, seed=0, count=200_000):
    """Return one distribution repeated, and noise for as many samples."""
    function, width, draw = MAKE[name]
    row = 0.7 * np.random.default_rng(seed).standard_normal((1, width))
    return (
        function(tf.constant(np.repeat(row, count, axis=0))),
        draw(np.random.default_rng(7), (count, NOISE_WIDTH[name])),
    )


@EVERY
def test_entropy_is_the_mean_negative_log_prob(name):
    policy, draws = many(name)
    _, log_prob = policy.sample_and_log_prob(draws)
    one, _ = many(name, count=1)
    np.testing.assert_allclose(
        one.entropy()[0], -np.mean(log_prob), rtol=5e-3, atol=5e-3
    )


@EVERY
def test_kl_is_the_mean_log_ratio(name):
    policy, draws = many(name)
    other, _ = many(name, seed=3)
    action = policy.sample(draws)
    ratio = policy.log_prob(action) - other.log_prob(action)
    policy, other = (many(name, seed, count=1)[0] for seed in (0, 3))
    np.testing.assert_allclose(
        policy.kl(other)[0], np.mean(ratio), rtol=2e-2, atol=2e-3
    )
    assert np.all(policy.kl(other) > 0.0)
    np.testing.assert_allclose(policy.kl(policy), 0.0, atol=1e-12)


@EVERY
def test_sample_and_log_prob_agree_with_the_separate_methods(name):
    policy, draws = make(name)
    action, log_prob = policy.sample_and_log_prob(draws)
    np.testing.assert_allclose(action, policy.sample(draws))
    np.testing.assert_allclose(log_prob, policy.log_prob(action), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "jit"),
    [
        ("SquashedGaussian", False),
        *slow(("Composite", False), *((name, True) for name in MAKE)),
    ],
)
def test_graph_equals_eager(name, jit):
    function, _, _ = MAKE[name]
    parameters = tf.random.stateless_normal((4, 6), seed=(1, 2))
    _, draws = make(name)

    action = function(parameters).sample(draws)

    def everything(parameters, draws):
        policy = function(parameters)
        other = function(parameters + 1.0)
        return (
            policy.sample(draws),
            policy.mode(),
            policy.log_prob(action),
            policy.entropy(),
            policy.kl(other),
        )

    graph = tf.function(everything, jit_compile=jit)(parameters, draws)
    for one, other in zip(everything(parameters, draws), graph, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@EVERY
def test_float32_or_wider(name):
    exact, draws = make(name, dtype="float64")
    for dtype in ("bfloat16", "float16", "float32"):
        policy, _ = make(name, dtype=dtype)
        other, _ = make(name, seed=1, dtype=dtype)
        log_prob = policy.log_prob(policy.sample(draws))
        for result in (log_prob, policy.entropy(), policy.kl(other)):
            assert result.dtype == "float32"
            assert result.shape == (4,)
        np.testing.assert_allclose(policy.entropy(), exact.entropy(), rtol=0.05)
    assert exact.entropy().dtype == "float64"
    assert exact.log_prob(exact.sample(draws)).dtype == "float64"


@EVERY
def test_actions_and_their_mode(name):
    policy, draws = make(name, dtype="float32")
    shape = {"Categorical": (4,), "Bernoulli": (4, 6)}.get(name, (4, 3))
    for action in (policy.sample(draws), policy.mode()):
        assert action.shape == shape
        assert action.dtype == ("int32" if name in DISCRETE else "float32")
    np.testing.assert_allclose(
        policy.mode(), policy.sample(np.zeros_like(draws)), rtol=1e-6
    )


@EVERY
def test_gradients_are_right(name):
    function, _, _ = MAKE[name]
    rng = np.random.default_rng(5)
    parameters = rng.standard_normal((2, 6))
    _, draws = make(name, batch=2)
    action = function(tf.constant(parameters)).sample(draws)
    target = function(tf.constant(parameters + rng.random((2, 6))))

    def total(parameters):
        policy = function(parameters)
        return tf.reduce_sum(
            policy.log_prob(action) + policy.entropy() + policy.kl(target)
        )

    theory, numeric = tf.test.compute_gradient(total, [parameters])
    np.testing.assert_allclose(theory[0], numeric[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("Categorical", "float32"),
        ("MultiCategorical", "float16"),
        ("Bernoulli", "float32"),
    ],
)
def test_finite_for_extreme_logits(name, dtype):
    function, _, draw = MAKE[name]
    logits = 1000.0 * tf.constant(
        [[1, -1, 1, -1, 1, -1], [-1, -1, -1, -1, -1, -1], [0, 1, 0, 1, 0, 1]],
        dtype,
    )
    policy, other = function(logits), function(-logits)
    action = policy.sample(draw(np.random.default_rng(0), (3, 6)))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        policy = function(logits)
        results = (
            policy.log_prob(action),
            policy.log_prob(other.mode()),
            policy.entropy(),
            policy.kl(other),
        )
    for result in (*results, tape.gradient(results, logits)):
        assert np.all(np.isfinite(result))


@EVERY
def test_wrong_shapes_are_refused(name):
    policy, draws = make(name)
    action = policy.sample(draws).numpy()
    fewer, _ = make(name, batch=3)
    other, _ = make("Bernoulli" if name != "Bernoulli" else "Categorical")
    for call, argument, message in (
        (policy.log_prob, action[:3], "Received"),
        (policy.log_prob, action[..., None], "Received"),
        (policy.sample, draws[:, :1], "Received"),
        (policy.sample, draws[0], "Received"),
        (policy.kl, fewer, "Received"),
        (policy.kl, other, f"Expected another {name}"),
    ):
        with pytest.raises(ValueError, match=message):
            call(argument)
    if "Categorical" in name:
        with pytest.raises(ValueError, match="Expected rank 2 for logits"):
            MAKE[name][0](tf.zeros(6))
