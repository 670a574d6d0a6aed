import math

import pytest

from keras_rl2.basics.outliers import Outliers
from keras_rl2.callbacks.diagnostic_rules import EntropyCollapse
from keras_rl2.callbacks.diagnostic_rules import FarOff
from keras_rl2.callbacks.diagnostic_rules import Overestimation
from keras_rl2.callbacks.diagnostic_rules import UselessCritic
from keras_rl2.callbacks.diagnostic_rules import get_state
from keras_rl2.callbacks.diagnostic_rules import gradient_not_finite
from keras_rl2.callbacks.diagnostic_rules import large_policy_step
from keras_rl2.callbacks.diagnostic_rules import many_dead_units
from keras_rl2.callbacks.diagnostic_rules import rules_for
from keras_rl2.callbacks.diagnostic_rules import set_state


def warned(rule, logs):
    return [rule(each) is not None for each in logs]


@pytest.mark.parametrize(
    ("approx_kl", "expected"),
    [(0.02, False), (0.1, False), (0.11, True), (math.nan, False)],
)
def test_a_policy_that_moves_too_far(approx_kl, expected):
    assert warned(large_policy_step, [{"approx_kl": approx_kl}]) == [expected]


def test_entropy_is_compared_with_the_first_one():
    # Of four actions alike, ln 4 = 1.386.
    entropies = [math.nan, math.log(4), 1.0, 0.0139, 0.0138]
    logs = [{"entropy": entropy} for entropy in entropies]
    assert warned(EntropyCollapse(), logs) == [False] * 4 + [True]


def test_a_policy_that_never_explored_has_not_collapsed():
    assert warned(EntropyCollapse(), [{"entropy": 0.0}] * 2) == [False] * 2


def test_ten_epochs_of_a_useless_critic():
    bad, good = {"explained_variance": -0.1}, {"explained_variance": 0.0}
    assert warned(UselessCritic(), [bad] * 11) == [False] * 9 + [True] * 2
    logs = [*[bad] * 9, good, *[bad] * 9]
    assert not any(warned(UselessCritic(), logs))


@pytest.mark.parametrize("other", [{}, {"explained_variance": math.nan}])
def test_epochs_that_say_nothing_of_the_critic_end_the_count(other):
    bad = {"explained_variance": -1.0}
    logs = [bad, other, bad, bad]
    assert warned(UselessCritic(epochs=2), logs) == [False] * 3 + [True]


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        # Rewards of at most 2 add up to 2 / (1 - 0.9) = 20 at most.
        ({"largest_reward": 2.0, "q_value": 30.1}, True),
        ({"largest_reward": 2.0, "q_value": 29.9}, False),
        ({"largest_reward": 2.0, "q_value": -500.0}, False),
        ({"largest_reward": 2.0, "q_value": math.nan}, False),
        ({"largest_reward": 2.0}, False),
        # No reward was seen yet: there is no bound.
        ({"largest_reward": 0.0, "q_value": 1.0}, False),
        ({"q_value": 1.0}, False),
    ],
)
def test_values_above_what_rewards_add_up_to(logs, expected):
    assert warned(Overestimation(gamma=0.9), [logs]) == [expected]


@pytest.mark.parametrize(
    ("entropy", "q_value", "expected"),
    [
        # (1 + 0.5 * 2) / (1 - 0.9) = 20.
        (2.0, 29.9, False),
        (2.0, 30.1, True),
        # It may be negative; then it bounds no more than rewards do.
        (-2.0, 14.9, False),
        (-2.0, 15.1, True),
    ],
)
def test_the_bonus_for_entropy_is_no_overestimation(entropy, q_value, expected):
    logs = {
        "largest_reward": 1.0,
        "temperature": 0.5,
        "entropy": entropy,
        "q_value": q_value,
    }
    assert warned(Overestimation(gamma=0.9), [logs]) == [expected]


def test_without_discounting_there_is_no_bound():
    logs = {"largest_reward": 1.0, "q_value": 1e9}
    assert warned(Overestimation(gamma=1.0), [logs]) == [False]


@pytest.mark.parametrize(
    ("norm", "expected"),
    [(0.0, False), (1e30, False), (math.inf, True), (math.nan, True)],
)
def test_gradients_that_are_not_finite(norm, expected):
    assert warned(gradient_not_finite, [{"gradient_norm": norm}]) == [expected]


@pytest.mark.parametrize(("skipped", "expected"), [(0.0, False), (1.0, True)])
def test_updates_that_were_skipped(skipped, expected):
    logs = {"gradient_norm": 1.0, "skipped_updates": skipped}
    assert warned(gradient_not_finite, [logs]) == [expected]


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, False), (0.5, False), (0.51, True)]
)
def test_more_than_half_of_the_units_are_dead(share, expected):
    assert warned(many_dead_units, [{"dead_units": share}]) == [expected]


@pytest.mark.parametrize(
    ("rule", "logs", "value", "remedy"),
    [
        (large_policy_step, {"approx_kl": 0.25}, "0.25", "target_kl"),
        (many_dead_units, {"dead_units": 0.6}, "60%", "activation"),
        (UselessCritic(1), {"explained_variance": -2.0}, "-2", "critic_opt"),
        (
            Overestimation(0.9),
            {"q_value": 99.0, "largest_reward": 1.0},
            "q_value=99",
            "TargetNetworkSync",
        ),
        (
            gradient_not_finite,
            {"gradient_norm": math.inf},
            "inf",
            "learning rate",
        ),
    ],
)
def test_warnings_name_the_value_and_what_helps(rule, logs, value, remedy):
    message = rule(logs)
    assert value in message
    assert remedy in message


def test_no_logs_are_no_reason_to_warn():
    rules = rules_for(discrete=True, gamma=0.9)
    assert len(rules) == 6
    assert [rule({}) for rule in rules] == [None] * 6


@pytest.mark.parametrize(
    ("arguments", "logs"),
    [
        # The entropy of numbers has no lower end.
        ({"discrete": False}, [{"entropy": 1.0}, {"entropy": -9.0}]),
        # The first updates of float16 overflow, and are not made.
        ({"scales_loss": True}, [{"gradient_norm": math.inf}]),
        ({"gamma": None}, [{"q_value": 1e9, "largest_reward": 1.0}]),
    ],
)
def test_rules_that_make_no_sense_are_left_out(arguments, logs):
    rules = rules_for(**arguments)
    assert not any(any(warned(rule, logs)) for rule in rules)


def test_outliers_of_an_earlier_fit_are_no_reason_to_warn():
    outliers = Outliers()
    outliers.add(2, "reward=1e+06")
    rule = FarOff("clipped_rewards", outliers)
    assert rule({"clipped_rewards": 2.0}) is None
    outliers.add(1, "reward=-1e+07")
    assert "reward=-1e+07, clipped_rewards=3." in rule({})


def test_a_rule_that_has_warned_is_gone_when_another_of_its_class_is_left():
    rules = [FarOff(key, Outliers()) for key in ("clipped_rewards", "other")]
    [left] = set_state(rules, get_state(rules[1:]))
    assert left.key == "other"
