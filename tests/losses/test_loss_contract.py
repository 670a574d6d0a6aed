"""The contract of every loss: shapes, dtypes and gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_rl2 import losses
from keras_rl2.distributions import Categorical
from keras_rl2.distributions import DiagonalGaussian
from support.gradients import gradient

ACTIONS = 3
# The axes of the arrays of each loss, n examples of a actions or atoms, and
# what follows them.
ARGUMENTS = {
    "policy_gradient": ("n n", ()),
    "clipped_surrogate": ("n n n", (0.2,)),
    "clipped_value": ("n n n", (0.2,)),
    "approximate_kl": ("n n", ()),
    "clip_fraction": ("n n", (0.2,)),
    "explained_variance": ("n n n", ()),
    "huber": ("n", ()),
    "expectile": ("n", (0.7,)),
    "q_learning": ("na n n n na", ()),
    "double_q_learning": ("na n n n na na", ()),
    "conservative_q": ("na n", ()),
    "categorical_projection": ("na na a", ()),
    "quantile_huber": ("na a na", ()),
    "soft_value": ("n n n", ()),
    "expected_soft_value": ("na na na", ()),
    "temperature_loss": ("n", ()),
    "sampled_conservative_q": ("na na n", ()),
    "advantage_weight": ("n", (3.0, 100.0)),
    "behavior_regularized_value": ("n na na", (2.5,)),
}
SHAPES = {
    "explained_variance": lambda n: [],
    "categorical_projection": lambda n: [n, ACTIONS],
}
EVERY = pytest.mark.parametrize("name", ARGUMENTS)


def loss_of(name):
    """Returns a loss that takes its arrays one by one."""
    if name == "soft_value":
        return lambda log_prob, *q: losses.soft_value(log_prob, q, 0.5)
    if name == "expected_soft_value":
        return lambda log_probs, *q: losses.expected_soft_value(
            log_probs, q, 0.5
        )
    if name == "temperature_loss":
        return lambda entropy: losses.temperature_loss(0.5, entropy, -1.0)
    numbers = ARGUMENTS[name][1]
    return lambda *arrays: getattr(losses, name)(*arrays, *numbers)


def shapes_of(name, count, wrong=()):
    """Returns shapes, `[n, 1]` for `[n]` and `[n]` for `[n, a]` where wrong."""
    sizes = {"n": count, "a": ACTIONS}
    shapes = []
    for position, letters in enumerate(ARGUMENTS[name][0].split()):
        shape = tuple(sizes[letter] for letter in letters)
        if position in wrong:
            shape = (*shape, 1) if len(shape) == 1 else shape[:1]
        shapes.append(shape)
    return shapes


def arrays_of(name, shapes):
    """Returns arrays that are valid arguments of any kind."""
    indices = [np.arange(float(np.prod(shape))) for shape in shapes]
    return [
        (index % ACTIONS).reshape(shape)
        for index, shape in zip(indices, shapes, strict=True)
    ]


def test_no_loss_is_left_out():
    public = {
        name
        for name, value in vars(losses).items()
        if getattr(value, "__module__", "").startswith(losses.__name__ + ".")
        and not name.startswith("_")
    }
    values = {"ValueDistribution", "value_distribution"}
    assert public == set(losses.__all__) == {*ARGUMENTS, *values}


@EVERY
def test_arrays_that_would_broadcast_are_refused(name):
    """Above all `[n, 1]` beside `[n]`, of which the product is `[n, n]`."""
    every = range(len(ARGUMENTS[name][0].split()))
    mixed = {frozenset({wrong}) for wrong in every}
    mixed |= {frozenset({*every} - {right}) for right in every} - {frozenset()}
    for wrong in mixed:
        for count in (1, 100):
            arrays = arrays_of(name, shapes_of(name, count, wrong))
            with pytest.raises(ValueError, match=r"(?s)Expected .*Received: "):
                loss_of(name)(*arrays)


def test_messages_about_shapes_name_the_squeeze():
    message = r"(?s)advantage of shape \[100, 1\].*\[100, 100\]: squeeze the"
    with pytest.raises(ValueError, match=message):
        losses.policy_gradient(np.ones(100), np.ones((100, 1)))
    with pytest.raises(ValueError, match="squeeze the last axis of action"):
        losses.conservative_q(np.ones((3, 2)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="Expected equal shapes"):
        losses.policy_gradient(np.ones(4), np.ones(3))


@EVERY
def test_one_value_of_each_example_in_float32_or_wider(name):
    arrays = arrays_of(name, shapes_of(name, 4))
    for dtype, expected in (
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float64", "float64"),
    ):
        narrow = [tf.cast(array, dtype) for array in arrays]
        wide = [tf.cast(array, expected) for array in narrow]
        result = loss_of(name)(*narrow)
        assert result.dtype == expected
        assert result.shape == SHAPES.get(name, lambda n: [n])(4)
        np.testing.assert_array_equal(result, loss_of(name)(*wide))


@pytest.mark.slow
@EVERY
def test_compiled_by_xla(name):
    arrays = arrays_of(name, shapes_of(name, 7))
    arrays = [tf.constant(array + 0.125 * (array > 1)) for array in arrays]
    compiled = tf.function(loss_of(name), jit_compile=True)(*arrays)
    np.testing.assert_allclose(compiled, loss_of(name)(*arrays), rtol=1e-9)


def test_clip_ratio_may_be_a_tensor():
    log_prob, old = [0.3, -0.3], [0.0, 0.0]
    for function in (
        lambda clip: losses.clipped_surrogate(log_prob, old, [1.0, 1.0], clip),
        lambda clip: losses.clipped_value(log_prob, old, [1.0, 1.0], clip),
        lambda clip: losses.clip_fraction(log_prob, old, clip),
    ):
        np.testing.assert_array_equal(function(0.2), function(tf.constant(0.2)))
        with pytest.raises(ValueError, match="Expected rank 0"):
            function(np.array([0.2, 0.2]))


@pytest.mark.parametrize(
    ("name", "learning"),
    [
        ("policy_gradient", {0}),
        ("clipped_surrogate", {0}),
        ("q_learning", {0}),
        ("double_q_learning", {0}),
        ("soft_value", {0, 1, 2}),
        ("temperature_loss", set()),
        ("sampled_conservative_q", {0, 2}),
        ("advantage_weight", set()),
        ("behavior_regularized_value", {0, 1, 2}),
        ("quantile_huber", {0}),
        ("categorical_projection", set()),
    ],
)
def test_gradient_reaches_the_learning_arguments_and_no_others(name, learning):
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.1, 0.9, shape) for shape in shapes_of(name, 40)]
    if name == "categorical_projection":
        arrays[2] = np.arange(3.0)
    for position, array in enumerate(arrays):

        def summed(value, position=position):
            # Of a projection the mass of one atom: all of it is always 1.
            loss = loss_of(name)(
                *arrays[:position], value, *arrays[position + 1 :]
            )
            return loss if len(loss.shape) == 1 else loss[:, 0]

        slope = gradient(summed, array)
        assert np.any(slope) == (position in learning), position


@pytest.mark.parametrize(
    ("kind", "objective"),
    [("discrete", "policy_gradient"), ("gaussian", "clipped_surrogate")],
)
def test_a_batch_has_the_mean_gradient_of_its_examples(kind, objective):
    count, size, rng = 7, 5, np.random.default_rng(0)
    observation = rng.normal(size=(count, size)).astype("float32")
    old_log_prob = rng.normal(-2.0, 0.3, count).astype("float32")
    reward = rng.normal(size=count).astype("float32")
    action, outputs = rng.integers(ACTIONS, size=count), ACTIONS
    if kind == "gaussian":
        action = rng.normal(size=(count, ACTIONS)).astype("float32")
        outputs = 2 * ACTIONS
    keras.utils.set_random_seed(0)
    inputs = keras.Input((size,))
    actor, critic = [keras.layers.Dense(16, "tanh")(inputs) for _ in range(2)]
    heads = [keras.layers.Dense(outputs)(actor), keras.layers.Dense(1)(critic)]
    model = keras.Model(inputs, heads)

    def loss_of_each(rows):
        parameters, value = model(observation[rows])
        policy = (
            Categorical(parameters)
            if kind == "discrete"
            else DiagonalGaussian(*ops.split(parameters, 2, axis=-1))
        )
        advantage = reward[rows] - value[:, 0]
        log_prob = policy.log_prob(action[rows])
        if objective == "policy_gradient":
            loss = losses.policy_gradient(log_prob, advantage)
        else:
            loss = losses.clipped_surrogate(
                log_prob, old_log_prob[rows], advantage, 0.2
            )
        return loss + 0.5 * losses.huber(advantage) - 0.01 * policy.entropy()

    def flat_gradient(batches):
        with tf.GradientTape() as tape:
            each = [tf.reduce_sum(loss_of_each(rows)) for rows in batches]
            loss = tf.add_n(each) / count
        gradients = tape.gradient(loss, model.trainable_variables)
        return loss, np.concatenate([np.ravel(each) for each in gradients])

    loss, batch = flat_gradient([slice(count)])
    sums, loop = flat_gradient([slice(i, i + 1) for i in range(count)])
    np.testing.assert_allclose(sums, loss, rtol=1e-6)
    assert np.linalg.norm(loop - batch) <= 1e-6 * np.linalg.norm(batch)
