"""Which arguments of a loss learn from it, and which count as constants."""

import numpy as np
import pytest

from keras_rl2 import losses
from support.gradients import gradient

# Ratios and errors off the corners of all these functions.
A, B, C = [-0.5, -1.25], [-0.625, -1.0], [2.0, -3.0]
Q, NEXT_Q = [[1.0, 2.5], [0.5, -1.0]], [[4.0, 6.0], [2.0, 1.0]]

LOSSES = {
    "policy_gradient": (
        losses.policy_gradient,
        {"log_prob": A, "advantage": C},
        {"log_prob"},
    ),
    "clipped_surrogate": (
        lambda **arrays: losses.clipped_surrogate(**arrays, clip_ratio=0.5),
        {"log_prob": A, "old_log_prob": B, "advantage": C},
        {"log_prob"},
    ),
    "q_learning": (
        lambda **arrays: losses.q_learning(action=[0, 1], **arrays),
        {
            "q_values": Q,
            "reward": [1.0, 2.0],
            "discount": [0.5, 0.25],
            "next_q_values": NEXT_Q,
        },
        {"q_values"},
    ),
    "double_q_learning": (
        lambda **arrays: losses.double_q_learning(action=[0, 1], **arrays),
        {
            "q_values": Q,
            "reward": [1.0, 2.0],
            "discount": [0.5, 0.25],
            "next_q_values": NEXT_Q,
            "next_q_selector": Q,
        },
        {"q_values"},
    ),
    "soft_value": (
        lambda log_prob, one, other: losses.soft_value(
            log_prob, [one, other], 0.5
        ),
        {"log_prob": A, "one": [1.0, 5.0], "other": [4.0, 2.0]},
        {"log_prob", "one", "other"},
    ),
    "temperature_loss": (
        lambda log_temperature, entropy: losses.temperature_loss(
            log_temperature, entropy, -0.5
        ),
        {"log_temperature": 2.0, "entropy": A},
        {"log_temperature"},
    ),
    "sampled_conservative_q": (
        losses.sampled_conservative_q,
        {"q_values": Q, "log_probs": NEXT_Q, "taken": C},
        {"q_values", "taken"},
    ),
    "advantage_weight": (
        lambda advantage: losses.advantage_weight(advantage, 3.0, 100.0),
        {"advantage": A},
        set(),
    ),
    "behavior_regularized_value": (
        lambda value, action: losses.behavior_regularized_value(
            value, action, NEXT_Q, 2.5
        ),
        {"value": A, "action": Q},
        {"value", "action"},
    ),
    "quantile_huber": (
        lambda **arrays: losses.quantile_huber(**arrays, delta=0.5),
        {"quantiles": Q, "taus": [[0.25, 0.75]] * 2, "targets": NEXT_Q},
        {"quantiles"},
    ),
    "categorical_projection": (
        lambda support, probabilities: losses.categorical_projection(
            support, probabilities, [0.0, 1.0, 2.0]
        )[:, 0],
        {"support": [[0.25, 0.5]] * 2, "probabilities": [[0.25, 0.75]] * 2},
        set(),
    ),
}


@pytest.mark.parametrize(
    ("name", "argument"),
    [
        (name, argument)
        for name, (_, arguments, _) in LOSSES.items()
        for argument in arguments
    ],
)
def test_gradient_reaches_what_learns_and_nothing_else(name, argument):
    loss, arguments, learning = LOSSES[name]
    slope = gradient(
        lambda value: loss(**{**arguments, argument: value}),
        arguments[argument],
    )
    assert np.any(slope) == (argument in learning)
