import numpy as np
import pytest
import tensorflow as tf

from keras_rl2 import losses
from support.gradients import gradient

NEXT = {"q_learning": 1, "double_q_learning": 2}
EITHER = pytest.mark.parametrize("name", NEXT)


def transition(seed=0, batch=64, actions=4):
    """Return q_values, action, reward, discount, next_q_values."""
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((batch, actions)),
        rng.integers(actions, size=batch),
        rng.standard_normal(batch),
        0.99 * (rng.random(batch) > 0.2),
        rng.standard_normal((batch, actions)),
    )


def call(name, *arrays):
    """Call a TD error; where one is needed, the selector is the judge."""
    return getattr(losses, name)(*arrays, *[arrays[-1]] * (NEXT[name] - 1))


@EITHER
def test_td_error_by_loop(name):
    q, action, reward, discount, next_q = transition()
    expected = [
        reward[n] + discount[n] * max(next_q[n]) - q[n, action[n]]
        for n in range(len(q))
    ]
    error = call(name, q, action, reward, discount, next_q)
    np.testing.assert_allclose(error, expected, rtol=1e-12)


def test_double_q_learning_takes_the_value_at_the_choice_of_the_selector():
    selector = transition(seed=1)[-1]
    arrays = transition()
    q, action, reward, discount, next_q = arrays
    rows = np.arange(len(q))
    next_value = next_q[rows, selector.argmax(axis=-1)]
    error = losses.double_q_learning(*arrays, selector)
    expected = reward + discount * next_value - q[rows, action]
    np.testing.assert_allclose(error, expected, rtol=1e-12)
    # Never above the maximum, which is what it is there for.
    assert np.all(error <= losses.q_learning(*arrays))


@EITHER
def test_the_gradient_reaches_the_action_taken_alone(name):
    _, action, reward, discount, _ = transition(batch=5)

    def bootstrapped_from_itself(q):
        error = call(name, q, action, reward, discount, q)
        return losses.expectile(error, 0.5)

    # Fitted to the values themselves: a leak through the target would show.
    q = transition(seed=2, batch=5)[0]
    slope = gradient(bootstrapped_from_itself, q)
    taken = np.eye(4)[action]
    error = call(name, q, action, reward, discount, q).numpy()
    np.testing.assert_allclose(slope, -error[:, None] * taken, rtol=1e-9)


@EITHER
@pytest.mark.parametrize("after", [1e6, -np.inf, np.inf, np.nan])
def test_nothing_counts_after_termination(name, after):
    last = np.full((1, 2), after)
    error = call(name, [[2.0, 5.0]], [0], [3.0], [0.0], last)
    assert error.numpy().tolist() == [1.0], after


@EITHER
def test_actions_that_are_not_allowed(name):
    q, next_q = [[1.0, -np.inf]], [[-np.inf, 4.0]]
    arrays = [0], [1.0], [0.5], next_q
    assert call(name, q, *arrays).numpy().tolist() == [2.0]
    slope = gradient(lambda q: call(name, q, *arrays), q)
    assert slope.tolist() == [[-1.0, 0.0]]


@EITHER
def test_values_that_do_not_fit_are_refused(name):
    q, action, reward, discount, next_q = transition(batch=3)
    for arrays, message in (
        ((q, action, reward, discount, next_q[:, :1]), "equal shapes"),
        ((q, action, reward, discount[:2], next_q), "shape .3. for d"),
        ((q, action[:2], reward[:2], discount[:2], next_q), "shape .3. for a"),
    ):
        with pytest.raises(ValueError, match=f"Expected {message}"):
            call(name, *arrays)


def test_conservative_q_is_cross_entropy_of_the_softmax_policy():
    q, action, *_ = transition()
    expected = tf.nn.sparse_softmax_cross_entropy_with_logits(action, q)
    loss = losses.conservative_q(q, action)
    np.testing.assert_allclose(loss, expected, rtol=1e-9)
    assert np.all(loss >= 0.0)


def test_conservative_q_raises_the_action_in_the_data():
    q, action = np.zeros((1, 4)), [2]
    slope = gradient(lambda q: losses.conservative_q(q, action), q)
    np.testing.assert_allclose(slope, [[0.25, 0.25, -0.75, 0.25]])


def test_conservative_q_keeps_its_digits_at_large_values():
    q = np.float32([[1e6, 1e6, 1e6]])
    loss = losses.conservative_q(q, [1])
    np.testing.assert_allclose(loss, [np.log(3.0)], rtol=1e-6)


def test_conservative_q_where_an_action_is_not_allowed():
    q = [[0.0, -np.inf, 0.0]]
    loss = losses.conservative_q(q, [0])
    np.testing.assert_allclose(loss, [np.log(2.0)], rtol=1e-6)
    slope = gradient(lambda q: losses.conservative_q(q, [0]), q)
    np.testing.assert_allclose(slope, [[-0.5, 0.0, 0.5]])
