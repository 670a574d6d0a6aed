import numpy as np
import pytest
import tensorflow as tf

from keras_rl2 import losses
from support import golden
from support.gradients import gradient

SAMPLED = [
    case
    for case in golden.load_cases()
    if case["function"] == "cql_continuous_stochastic"
]


def test_sampled_conservative_q_by_hand():
    loss = losses.sampled_conservative_q(
        [[1.0, 2.0], [0.0, 3.0]], np.log([[0.5, 0.25], [1.0, 2.0]]), [2.0, -1.0]
    )
    expected = [
        np.log(np.exp(1) / 0.5 + np.exp(2) / 0.25) - 2.0,
        np.log(1.0 + np.exp(3) / 2.0) + 1.0,
    ]
    np.testing.assert_allclose(loss, expected, rtol=1e-6)


def test_sampled_conservative_q_of_large_values():
    values = tf.constant([[1e30, 1e30]])
    loss = losses.sampled_conservative_q(values, tf.zeros((1, 2)), [1e30])
    np.testing.assert_allclose(loss, [np.log(2.0)], rtol=1e-6)


@pytest.mark.parametrize("case", SAMPLED, ids=lambda case: case["id"])
def test_published_penalty_of_sampled_actions(case):
    """TF-Agents' own numbers, whose random actions nobody has."""
    given = case["inputs"]
    rng, draws = np.random.default_rng(0), 2000
    states = np.tile(given["state_value"], draws)[:, None]
    n = given["n_samples"]
    drawn = rng.uniform(given["low"], given["high"], (len(states), n))
    own = np.full_like(drawn, given["policy_action"])
    width = given["high"] - given["low"]
    each = losses.sampled_conservative_q(
        states + np.concatenate([drawn, own], axis=1),
        np.concatenate(
            [
                np.full_like(drawn, -np.log(width)),
                np.full_like(own, given["policy_log_prob"]),
            ],
            axis=1,
        ),
        states[:, 0] + np.tile(given["data_actions"], draws),
    )
    loss = given["alpha"] * np.mean(each)
    tolerance = case["tolerance"]["atol"]
    assert loss == pytest.approx(case["expected"]["loss"], abs=tolerance)


def test_advantage_weight_by_hand():
    weight = losses.advantage_weight([0.0, -1.0, 0.5, 7.0], 2.0, 100.0)
    expected = [1.0, np.exp(-2.0), np.e, 100.0]
    np.testing.assert_allclose(weight, expected, rtol=1e-5)
    flat = losses.advantage_weight([3.0, -3.0], 0.0, 100.0)
    np.testing.assert_array_equal(flat, [1.0, 1.0])


def test_advantage_weight_does_not_overflow():
    weight = losses.advantage_weight([1e30, -1e30], 3.0, 100.0)
    np.testing.assert_allclose(weight, [100.0, 0.0], rtol=1e-5)


def test_behavior_regularized_value_by_hand():
    loss = losses.behavior_regularized_value(
        [4.0, -2.0],
        [[0.5, 0.0], [1.0, -1.0]],
        [[0.0, 0.0], [1.0, 1.0]],
        alpha=1.5,
    )
    # λ = 1.5 / 3
    np.testing.assert_allclose(loss, [0.125 - 2.0, 2.0 + 1.0], rtol=1e-6)


def test_the_scale_of_values_makes_no_difference():
    action, data = np.array([[0.5], [1.0]]), np.array([[0.0], [0.5]])
    one, other = (
        losses.behavior_regularized_value(
            scale * np.array([1.0, -3.0]), action, data, 2.5
        )
        for scale in (1.0, 1e6)
    )
    np.testing.assert_allclose(one, other, rtol=1e-5)
    nothing = losses.behavior_regularized_value([0.0, 0.0], action, data, 2.5)
    np.testing.assert_allclose(nothing, [0.25, 0.25])


def test_the_scale_of_values_is_a_constant():
    slope = gradient(
        lambda value: losses.behavior_regularized_value(
            value, [[0.5], [1.0]], [[0.0], [0.5]], 2.0
        ),
        [4.0, -2.0],
    )
    np.testing.assert_allclose(slope, [-2.0 / 3.0] * 2, rtol=1e-6)


def test_other_shapes_are_refused():
    two, wide = np.ones(2), np.ones((2, 3))
    for call in (
        lambda: losses.sampled_conservative_q(wide, np.ones((2, 4)), two),
        lambda: losses.behavior_regularized_value(two, wide, wide[:, :2], 1.0),
        lambda: losses.behavior_regularized_value(
            two, np.ones((3, 1)), np.ones((3, 1)), 1.0
        ),
    ):
        with pytest.raises(ValueError, match="Expected"):
            call()
