import math

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


NAN, INF = math.nan, math.inf


def test_rules_of_one_epoch():
    critic = Overestimation(gamma=0.9)
    entropy = {"largest_reward": 1.0, "temperature": 0.5}
    for rule, logs, expected in (
        (large_policy_step, {"approx_kl": 0.1}, False),
        (large_policy_step, {"approx_kl": 0.11}, True),
        (large_policy_step, {"approx_kl": NAN}, False),
        (gradient_not_finite, {"gradient_norm": 0.0}, False),
        (gradient_not_finite, {"gradient_norm": 1e30}, False),
        (gradient_not_finite, {"gradient_norm": INF}, True),
        (gradient_not_finite, {"gradient_norm": NAN}, True),
        (
            gradient_not_finite,
            {"gradient_norm": 1.0, "skipped_updates": 0.0},
            False,
        ),
        (
            gradient_not_finite,
            {"gradient_norm": 1.0, "skipped_updates": 1.0},
            True,
        ),
        (many_dead_units, {"dead_units": 0.5}, False),
        (many_dead_units, {"dead_units": 0.51}, True),
        # Rewards of at most 2 add up to 2 / (1 - 0.9) = 20 at most.
        (critic, {"largest_reward": 2.0, "q_value": 30.1}, True),
        (critic, {"largest_reward": 2.0, "q_value": 29.9}, False),
        (critic, {"largest_reward": 2.0, "q_value": -500.0}, False),
        (critic, {"largest_reward": 2.0, "q_value": NAN}, False),
        (critic, {"largest_reward": 2.0}, False),
        # No reward was seen yet: there is no bound.
        (critic, {"largest_reward": 0.0, "q_value": 1.0}, False),
        (critic, {"q_value": 1.0}, False),
        # With the bonus for entropy, (1 + 0.5 * 2) / (1 - 0.9) = 20.
        (critic, entropy | {"entropy": 2.0, "q_value": 29.9}, False),
        (critic, entropy | {"entropy": 2.0, "q_value": 30.1}, True),
        # It may be negative; then it bounds no more than rewards do.
        (critic, entropy | {"entropy": -2.0, "q_value": 14.9}, False),
        (critic, entropy | {"entropy": -2.0, "q_value": 15.1}, True),
        # Without discounting there is no bound.
        (
            Overestimation(gamma=1.0),
            {"largest_reward": 1.0, "q_value": 1e9},
            False,
        ),
    ):
        assert warned(rule, [logs]) == [expected], (rule, logs)


def test_entropy_is_compared_with_the_first_one():
    # Of four actions alike, ln 4 = 1.386.
    entropies = [NAN, math.log(4), 1.0, 0.0139, 0.0138]
    logs = [{"entropy": entropy} for entropy in entropies]
    assert warned(EntropyCollapse(), logs) == [False] * 4 + [True]
    # A policy that never explored has not collapsed.
    assert warned(EntropyCollapse(), [{"entropy": 0.0}] * 2) == [False] * 2


def test_ten_epochs_of_a_useless_critic():
    bad, good = {"explained_variance": -0.1}, {"explained_variance": 0.0}
    assert warned(UselessCritic(), [bad] * 11) == [False] * 9 + [True] * 2
    logs = [*[bad] * 9, good, *[bad] * 9]
    assert not any(warned(UselessCritic(), logs))
    # Epochs that say nothing of the critic end the count.
    for other in ({}, {"explained_variance": NAN}):
        logs = [bad, other, bad, bad]
        assert warned(UselessCritic(2), logs) == [False] * 3 + [True]


def test_warnings_name_the_value_and_what_helps():
    q_value = {"q_value": 99.0, "largest_reward": 1.0}
    for rule, logs, value, remedy in (
        (large_policy_step, {"approx_kl": 0.25}, "0.25", "target_kl"),
        (many_dead_units, {"dead_units": 0.6}, "60%", "activation"),
        (UselessCritic(1), {"explained_variance": -2.0}, "-2", "critic_opt"),
        (Overestimation(0.9), q_value, "q_value=99", "TargetNetworkSync"),
        (gradient_not_finite, {"gradient_norm": INF}, "inf", "learning rate"),
    ):
        message = rule(logs)
        assert value in message
        assert remedy in message


def test_no_logs_are_no_reason_to_warn():
    rules = rules_for(discrete=True, gamma=0.9)
    assert len(rules) == 6
    assert [rule({}) for rule in rules] == [None] * 6


def test_rules_that_make_no_sense_are_left_out():
    for arguments, logs in (
        # The entropy of numbers has no lower end.
        ({"discrete": False}, [{"entropy": 1.0}, {"entropy": -9.0}]),
        # The first updates of float16 overflow, and are not made.
        ({"scales_loss": True}, [{"gradient_norm": INF}]),
        ({"gamma": None}, [{"q_value": 1e9, "largest_reward": 1.0}]),
    ):
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
