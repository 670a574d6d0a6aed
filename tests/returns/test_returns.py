import numpy as np
import pytest
import tensorflow as tf

from keras_rl2 import returns

FUNCTIONS = {
    "lambda": lambda r, d, v, w, cut: returns.lambda_returns(r, d, w, 0.9),
    "n_step": lambda r, d, v, w, cut: returns.n_step_returns(r, d, w, 3, cut),
    "gae": lambda r, d, v, w, cut: returns.generalized_advantage_estimation(
        r, d, v, w, 0.9, cut
    ),
    "vtrace": lambda r, d, v, w, cut: returns.vtrace(
        v, r, d, v, w, 0.9, 1.1, 1.0, 1.2, cut
    ),
}

OF_ONE_ENVIRONMENT = {
    **FUNCTIONS,
    "discounted": lambda r, d, v, w, cut: returns.discounted_returns(
        r, d, w[-1]
    ),
    "lambda of each step": lambda r, d, v, w, cut: returns.lambda_returns(
        r, d, w, v
    ),
}


def trajectory(length=37, batch=5, seed=0, dtype="float64"):
    """Return rewards, discounts, values, next_values, truncated."""
    rng = np.random.default_rng(seed)
    rewards, values, next_values = rng.standard_normal((3, length, batch))
    ends = rng.random((length, batch))
    discounts = 0.99 * (ends > 0.1)
    arrays = rewards, discounts, values, next_values
    truncated = (ends > 0.1) & (ends < 0.25)
    return *(array.astype(dtype) for array in arrays), truncated


def gae_by_loop(rewards, discounts, values, next_values, lambda_, truncated):
    """Return GAE step by step."""
    advantages = np.zeros_like(rewards)
    later = np.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        error = rewards[t] + discounts[t] * next_values[t] - values[t]
        later = error + discounts[t] * lambda_ * ~truncated[t] * later
        advantages[t] = later
    return advantages


@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 64, 65, 130, 600])
def test_gae_of_any_length_equals_the_loop(length):
    arrays = trajectory(length)
    advantages, targets = returns.generalized_advantage_estimation(
        *arrays[:4], 0.95, arrays[4]
    )
    expected = gae_by_loop(*arrays[:4], 0.95, arrays[4])
    np.testing.assert_allclose(
        advantages, expected, rtol=1e-9, atol=1e-12, err_msg=str(length)
    )
    np.testing.assert_allclose(targets, expected + arrays[2], rtol=1e-9)
    assert targets.dtype == "float64"


def test_unknown_length_gives_the_same():
    @tf.function(
        input_signature=[tf.TensorSpec([None, None], tf.float64)] * 4
        + [tf.TensorSpec([None, None], tf.bool)]
    )
    def function(*arrays):
        return returns.generalized_advantage_estimation(
            *arrays[:4], 0.95, arrays[4]
        )

    for length in (1, 2, 37, 600):
        arrays = trajectory(length)
        advantages, _ = function(*arrays)
        expected = gae_by_loop(*arrays[:4], 0.95, arrays[4])
        np.testing.assert_allclose(
            advantages, expected, rtol=1e-9, atol=1e-12, err_msg=str(length)
        )


@pytest.mark.parametrize(
    "jit", [False, pytest.param(True, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_graph_equals_eager(name, jit):
    arrays = trajectory(dtype="float32")
    eager = FUNCTIONS[name](*arrays)
    graph = tf.function(FUNCTIONS[name], jit_compile=jit)(
        *map(tf.constant, arrays)
    )
    for one, other in zip(
        tf.nest.flatten(eager), tf.nest.flatten(graph), strict=True
    ):
        assert one.dtype == tf.float32
        assert one.shape == (37, 5)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_gae_with_lambda_1_is_return_minus_value():
    rewards, discounts, values, _, _ = trajectory()
    next_values = np.concatenate([values[1:], np.ones((1, 5))])
    advantages, targets = returns.generalized_advantage_estimation(
        rewards, discounts, values, next_values, 1.0
    )
    expected = returns.discounted_returns(rewards, discounts, np.ones(5))
    np.testing.assert_allclose(targets, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(advantages, expected - values, atol=1e-9)


def test_gae_targets_are_lambda_returns():
    rewards, discounts, values, next_values, cut = trajectory()
    next_values = np.where(
        cut, next_values, np.concatenate([values[1:], next_values[-1:]])
    )
    _, targets = returns.generalized_advantage_estimation(
        rewards, discounts, values, next_values, 0.8, cut
    )
    expected = returns.lambda_returns(
        rewards, discounts, next_values, np.where(cut, 0.0, 0.8)
    )
    np.testing.assert_allclose(targets, expected, rtol=1e-9, atol=1e-12)
    of_flags = returns.lambda_returns(
        rewards, discounts, next_values, 0.8, truncated=cut
    )
    np.testing.assert_allclose(of_flags, expected, rtol=1e-12)


def test_truncation_keeps_the_bootstrap_and_termination_does_not():
    arrays = {
        "rewards": np.ones((2, 1)),
        "values": np.zeros((2, 1)),
        "next_values": np.array([[10.0], [20.0]]),
        "gae_lambda": 1.0,
    }
    truncated, _ = returns.generalized_advantage_estimation(
        discounts=np.full((2, 1), 0.5), truncated=[[True], [False]], **arrays
    )
    terminated, _ = returns.generalized_advantage_estimation(
        discounts=np.array([[0.0], [0.5]]), **arrays
    )
    assert truncated.numpy().tolist() == [[6.0], [11.0]]
    assert terminated.numpy().tolist() == [[1.0], [11.0]]


@pytest.mark.parametrize("ends", [True, False])
def test_n_step_returns_equal_the_sum_over_the_window(ends):
    length = 37 if ends else 4
    rewards, discounts, _, next_values, cut = trajectory(length)
    if not ends:
        discounts, cut = np.full_like(rewards, 0.5), np.zeros_like(cut)
    for n in (1, 2, 3, length - 1, length, length + 1, 100):
        result = returns.n_step_returns(rewards, discounts, next_values, n, cut)
        expected = np.zeros_like(rewards)
        for t, b in np.ndindex(*rewards.shape):
            weight = 1.0
            for k in range(t, min(t + n, length)):
                expected[t, b] += weight * rewards[k, b]
                weight *= discounts[k, b]
                if cut[k, b]:
                    break
            expected[t, b] += weight * next_values[k, b]
        np.testing.assert_allclose(
            result, expected, rtol=1e-9, atol=1e-12, err_msg=f"n={n}"
        )


def test_n_step_returns_of_unknown_length():
    function = tf.function(
        lambda r, d, v: returns.n_step_returns(r, d, v, 50),
        input_signature=[tf.TensorSpec([None, 5], tf.float64)] * 3,
    )
    rewards, discounts, _, next_values, _ = trajectory()
    np.testing.assert_allclose(
        function(rewards, discounts, next_values),
        returns.n_step_returns(rewards, discounts, next_values, 50),
        rtol=1e-9,
    )


def test_gae_is_differentiable():
    rewards, discounts, values, next_values, cut = trajectory(20, 2)
    values = tf.constant(values)
    with tf.GradientTape() as tape:
        tape.watch(values)
        advantages, _ = returns.generalized_advantage_estimation(
            rewards, discounts, values, next_values, 0.9, cut
        )
        total = tf.reduce_sum(advantages)
    gradient = tape.gradient(total, values).numpy()
    # Each value enters with -1, weighed by all traces that pass through it.
    expected = np.zeros_like(gradient)
    weight = np.zeros(2)
    for t in range(20):
        weight = 1.0 + weight
        expected[t] = -weight
        weight = weight * discounts[t] * 0.9 * ~cut[t]
    np.testing.assert_allclose(gradient, expected, rtol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_shapes_are_refused(name):
    for index in (0, 1, 3):
        arrays, flat = list(trajectory(4, 4)), list(trajectory(4, 1))
        right = arrays[index]
        for wrong, message in (
            (right[:, :1], "Expected equal shapes"),
            (right[:, 0], "Expected equal shapes"),
            (right[:, None, None], "Expected rank 1 or 2"),
        ):
            arrays[index] = wrong
            with pytest.raises(ValueError, match=message):
                FUNCTIONS[name](*arrays)
        # Of one environment, a column among flat arrays.
        flat = [array[:, 0] for array in flat]
        flat[index] = flat[index][:, None]
        with pytest.raises(ValueError, match="squeeze the last axis"):
            FUNCTIONS[name](*flat)
    arrays = trajectory(4, 4)
    if name != "lambda":
        with pytest.raises(ValueError, match="truncated of shape"):
            FUNCTIONS[name](*arrays[:4], arrays[4][:, 0])


def test_bootstrap_and_n_are_checked():
    ones = np.ones((3, 2))
    with pytest.raises(ValueError, match="bootstrap_value"):
        returns.discounted_returns(ones, ones, np.ones((2, 1)))
    with pytest.raises(ValueError, match="Received: n=0"):
        returns.n_step_returns(ones, ones, ones, 0)
    with pytest.raises(ValueError, match="gae_lambda"):
        returns.generalized_advantage_estimation(*[ones] * 4, np.ones(2))


@pytest.mark.parametrize("name", OF_ONE_ENVIRONMENT)
def test_one_environment_equals_a_batch_of_one(name):
    for length in (1, 2, 8, 9, 37, 600):
        for make in (np.asarray, tf.constant):
            arrays = trajectory(length, 1)
            column = OF_ONE_ENVIRONMENT[name](*map(make, arrays))
            flat = OF_ONE_ENVIRONMENT[name](*(make(a[:, 0]) for a in arrays))
            for one, other in zip(
                tf.nest.flatten(flat), tf.nest.flatten(column), strict=True
            ):
                assert one.shape == (length,)
                assert one.dtype == tf.float64
                np.testing.assert_allclose(
                    one, other[:, 0], rtol=1e-12, atol=1e-12
                )


@pytest.mark.parametrize(
    ("length", "jit"),
    [(None, False), pytest.param(37, True, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("name", OF_ONE_ENVIRONMENT)
def test_one_environment_within_a_graph(name, length, jit):
    arrays = [array[:, 0] for array in trajectory(batch=1)]
    function = tf.function(
        OF_ONE_ENVIRONMENT[name],
        input_signature=[tf.TensorSpec([length], tf.float64)] * 4
        + [tf.TensorSpec([length], tf.bool)],
        jit_compile=jit,
        autograph=False,
    )
    expected = tf.nest.flatten(OF_ONE_ENVIRONMENT[name](*arrays))
    for one, other in zip(
        tf.nest.flatten(function(*arrays)), expected, strict=True
    ):
        assert one.shape == (37,)
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_lists_integers_and_scalar_tensors_are_taken():
    result = returns.discounted_returns([[1], [1]], [[1], [1]], [3])
    assert result.numpy().tolist() == [[5.0], [4.0]]
    assert result.dtype == "float32"
    result = returns.discounted_returns(np.zeros(1), np.ones(1), 0.1)
    assert result.numpy()[0] == 0.1
    arrays = trajectory(dtype="float32")[:4]
    np.testing.assert_array_equal(
        *(
            returns.generalized_advantage_estimation(*arrays, lambda_)[0]
            for lambda_ in (0.95, tf.constant(0.95))
        )
    )
    advantages, targets = returns.generalized_advantage_estimation(
        [1, 1], [0.5, 0.0], [1.0, 0.5], [0.5, 9.0], 1.0, [False, False]
    )
    assert advantages.numpy().tolist() == [0.5, 0.5]
    assert targets.numpy().tolist() == [1.5, 1.0]


def test_all_else_of_one_environment_is_flat_too():
    flat, column = np.ones(4), np.ones((4, 1))
    with pytest.raises(ValueError, match="bootstrap_value of shape"):
        returns.discounted_returns(flat, flat, np.ones(1))
    with pytest.raises(ValueError, match="lambda_ of shape"):
        returns.lambda_returns(flat, flat, flat, column)
    with pytest.raises(ValueError, match="truncated of shape"):
        returns.n_step_returns(flat, flat, flat, 2, column > 0)
