"""Known faults are recognised in the logs of a training."""

import math

import pytest

from keras_rl2.basics.outliers import Outliers
from keras_rl2.callbacks.diagnostics import Faults

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("logs", "said"),
    [
        ({"approx_kl": 0.1}, None),
        ({"approx_kl": 0.11}, "approx_kl=0.11 is above"),
        ({"approx_kl": NAN}, None),
        ({"gradient_norm": 1e30}, None),
        ({"gradient_norm": INF}, "gradient_norm=inf"),
        ({"gradient_norm": NAN}, "gradient_norm=nan"),
        ({"gradient_norm": 1.0, "skipped_updates": 1.0}, "skipped_updates=1"),
        ({"episode_return": None}, None),
        ({}, None),
    ],
)
def test_faults_of_one_epoch(logs, said):
    faults = Faults()
    found = faults.in_logs(logs)
    assert len(found) == (said is not None)
    assert all(said in message for message in found)
    # Each is said once.
    assert faults.in_logs(logs) == []


def test_entropy_is_compared_with_the_first_one():
    # Of four actions alike, ln 4 = 1.386.
    logs = [{"entropy": x} for x in (NAN, math.log(4), 1.0, 0.0139, 0.0138)]
    faults = Faults(discrete=True)
    assert [len(faults.in_logs(each)) for each in logs] == [0, 0, 0, 0, 1]
    # A policy that never explored has not collapsed.
    faults = Faults(discrete=True)
    assert not any(faults.in_logs({"entropy": 0.0}) for _ in range(2))


def test_ten_epochs_of_a_useless_critic():
    bad, good = {"explained_variance": -0.1}, {"explained_variance": 0.0}
    for other in (good, {}, {"explained_variance": NAN}):
        faults = Faults()
        logs = [*[bad] * 9, other, *[bad] * 10]
        found = [len(faults.in_logs(each)) for each in logs]
        assert found == [0] * 19 + [1]


@pytest.mark.parametrize("entropy", [1.0, -9.0])
def test_legitimate_infinities_and_negative_entropies_are_no_fault(entropy):
    # The entropy of numbers has no lower end; float16 overflows.
    faults = Faults(scales_loss=True)
    logs = {"gradient_norm": INF, "entropy": entropy}
    assert faults.in_logs(logs) == []


def test_values_that_no_return_allows():
    faults = Faults(largest_return=lambda: 10.0)
    for logs in ({"q_value": 10.0}, {"q_value": -99.0, "temperature": 1.0}):
        assert faults.in_logs(logs) == []
    (message,) = faults.in_logs({"q_value": -10.1})
    assert "abs(q_value)=10.1, but no discounted return exceeds 10 " in message


def test_outliers_of_an_earlier_fit_are_no_reason_to_warn():
    outliers = Outliers()
    outliers.add(2, "reward=1e+06")
    faults = Faults(outliers={"clipped_rewards": outliers})
    assert faults.in_logs({"clipped_rewards": 2.0}) == []
    outliers.add(1, "reward=-1e+07")
    (message,) = faults.in_logs({})
    assert "reward=-1e+07, clipped_rewards=3." in message
