"""A loss over a batch is the loss of one sample at a time, summed and divided.

The form that only looks like it, `[n, 1]` times `[n]`, must not get through.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_rl2 import losses
from keras_rl2.distributions import Categorical
from keras_rl2.distributions import DiagonalGaussian

SIZE, ACTIONS = 5, 3


def dense_networks(outputs, seed):
    """Makes an actor and a critic as a user would."""
    keras.utils.set_random_seed(seed)
    observation = keras.Input((SIZE,))
    hidden = [keras.layers.Dense(16, "tanh")(observation) for _ in range(2)]
    parameters = keras.layers.Dense(outputs)(hidden[0])
    value = keras.layers.Dense(1)(hidden[1])
    return keras.Model(observation, [parameters, value])


def categorical(parameters):
    return Categorical(parameters)


def gaussian(parameters):
    mean, log_std = ops.split(parameters, 2, axis=-1)
    return DiagonalGaussian(mean, log_std)


POLICIES = {"discrete": (categorical, 1), "gaussian": (gaussian, 2)}

OBJECTIVES = {
    "policy_gradient": lambda log_prob, advantage, batch: (
        losses.policy_gradient(log_prob, advantage)
    ),
    "clipped_surrogate": lambda log_prob, advantage, batch: (
        losses.clipped_surrogate(
            log_prob, batch["old_log_prob"], advantage, 0.2
        )
    ),
}


def sample_batch(kind, count, seed):
    """Draws what an actor-critic is trained on, at the scale of real data."""
    rng = np.random.default_rng(seed)
    actions = {
        "discrete": rng.integers(ACTIONS, size=count),
        "gaussian": rng.normal(size=(count, ACTIONS)).astype("float32"),
    }
    return {
        "observation": rng.normal(size=(count, SIZE)).astype("float32"),
        "action": actions[kind],
        "old_log_prob": rng.normal(-2.0, 0.3, count).astype("float32"),
        "reward": rng.normal(size=count).astype("float32"),
    }


def each_loss(model, kind, objective, batch):
    """Returns the actor-critic loss of each sample, `[n]`."""
    parameters, value = model(batch["observation"])
    policy = POLICIES[kind][0](parameters)
    advantage = batch["reward"] - value[:, 0]
    return (
        OBJECTIVES[objective](
            policy.log_prob(batch["action"]), advantage, batch
        )
        + 0.5 * losses.huber(advantage)
        - 0.01 * policy.entropy()
    )


def flat_gradient(model, loss_function):
    """Returns the gradient by all weights as one vector."""
    with tf.GradientTape() as tape:
        loss = loss_function()
    gradients = tape.gradient(loss, model.trainable_variables)
    return np.concatenate([np.ravel(gradient) for gradient in gradients])


@pytest.mark.spread
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("count", [1, 7, 64])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", POLICIES)
def test_gradients_of_loop_and_batch_agree(kind, objective, count, seed):
    model = dense_networks(ACTIONS * POLICIES[kind][1], seed)
    batch = sample_batch(kind, count, seed)

    def batch_form():
        return tf.reduce_mean(each_loss(model, kind, objective, batch))

    def loop_form():
        total = 0.0
        for i in range(count):
            one = {key: array[i : i + 1] for key, array in batch.items()}
            total += each_loss(model, kind, objective, one)[0]
        return total / count

    np.testing.assert_allclose(loop_form(), batch_form(), rtol=1e-6)
    by_loop = flat_gradient(model, loop_form)
    by_batch = flat_gradient(model, batch_form)
    difference = np.linalg.norm(by_loop - by_batch)
    assert difference <= 1e-6 * np.linalg.norm(by_batch)


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
"""Each function of the room: the axes of its arrays, and what follows them."""

CALLS = {
    "soft_value": lambda log_prob, *values: losses.soft_value(
        log_prob, values, 0.5
    ),
    "expected_soft_value": lambda log_probs, *values: (
        losses.expected_soft_value(log_probs, values, 0.5)
    ),
    "temperature_loss": lambda entropy: losses.temperature_loss(
        0.5, entropy, -1.0
    ),
}
"""How to call functions that do not take their arrays one by one."""

MIXED = [
    (name, [position == wrong for position in range(len(axes.split()))])
    for name, (axes, _) in ARGUMENTS.items()
    for wrong in range(len(axes.split()))
] + [
    (name, [position != right for position in range(len(axes.split()))])
    for name, (axes, _) in ARGUMENTS.items()
    if len(axes.split()) > 1
    for right in range(len(axes.split()))
]


def trace(name, wrong, count):
    """Traces a loss without running it, where told in the wrong form.

    Instead of `[n]` that is `[n, 1]`, and instead of `[n, a]` it is `[n]`.
    """
    axes, numbers = ARGUMENTS[name]
    sizes = {"n": count, "a": ACTIONS}
    signature = []
    for letters, is_wrong in zip(axes.split(), wrong, strict=True):
        shape = tuple(sizes[letter] for letter in letters)
        if is_wrong:
            shape = (*shape, 1) if len(shape) == 1 else shape[:1]
        signature.append(tf.TensorSpec(shape))
    function = CALLS.get(name, getattr(losses, name))
    traced = tf.function(
        lambda *arrays: function(*arrays, *numbers), input_signature=signature
    )
    return traced.get_concrete_function()


def test_no_loss_is_left_out():
    public = {
        name
        for name, value in vars(losses).items()
        if getattr(value, "__module__", "").startswith(losses.__name__ + ".")
        and not name.startswith("_")
    }
    assert public == set(ARGUMENTS) == set(losses.__all__)


@pytest.mark.parametrize(
    "count",
    [None, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 100))],
)
@pytest.mark.parametrize(("name", "wrong"), MIXED)
def test_the_broken_form_is_refused_while_it_is_traced(name, wrong, count):
    with pytest.raises(ValueError, match=r"(?s)Expected .*Received: "):
        trace(name, wrong, count)


@pytest.mark.parametrize("count", [None, 1, 100])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_right_form_is_traced(name, count):
    axes = ARGUMENTS[name][0].split()
    (result,) = trace(name, [False] * len(axes), count).outputs
    shapes = {
        "explained_variance": [],
        "categorical_projection": [count, ACTIONS],
    }
    assert result.shape.as_list() == shapes.get(name, [count])


def test_the_message_says_what_to_do():
    message = r"(?s)advantage of shape \[100, 1\].*\[100, 100\]: squeeze the"
    with pytest.raises(ValueError, match=message):
        trace("policy_gradient", [False, True], 100)


def test_what_the_broken_form_would_have_computed():
    rng = np.random.default_rng(0)
    log_prob, advantage = rng.normal(size=(2, 100))
    broken = np.mean(log_prob * advantage[:, None])
    np.testing.assert_allclose(broken, log_prob.mean() * advantage.mean())
    # Another order of the advantages changes the loss, but not this one.
    shuffled = rng.permutation(advantage)
    np.testing.assert_allclose(np.mean(log_prob * shuffled[:, None]), broken)
    right = np.mean(losses.policy_gradient(log_prob, advantage))
    assert abs(np.mean(log_prob * shuffled) + right) > 0.01
