"""The library against the published numbers of other libraries."""

import numpy as np
import pytest
import tensorflow as tf

from golden.adapters import ADAPTERS
from support.golden import as_arrays
from support.golden import load_cases

CASES = load_cases()
OURS = [case for case in CASES if case["function"] in ADAPTERS]
TESTED_WITH_WHAT_THEY_ARE_OF = {
    *("nstep_ring", "nstep_replay"),
    *("sum_tree", "sum_tree_never_zero", "per_weights"),
    *("running_mean_std", "reward_normalisation"),
    *("polyak", "cql_continuous_stochastic"),
}


def check(case, outputs, dtype):
    """Compares by the published tolerance, tighter where digits allow it."""
    rtol, atol = case["tolerance"]["rtol"], case["tolerance"]["atol"]
    if dtype == "float32":
        rtol, atol = max(rtol, 1e-5), max(atol, 1e-6)
    elif case.get("exact"):
        rtol = atol = 1e-9
    else:
        atol = max(atol, 1e-9)
    for name, expected in as_arrays(case["expected"], "float64").items():
        tf.nest.assert_same_structure(outputs[name], expected)
        ours, theirs = map(tf.nest.flatten, (outputs[name], expected))
        for one, other in zip(ours, theirs, strict=True):
            message = f"{case['id']}: {name}"
            np.testing.assert_allclose(one, other, rtol, atol, err_msg=message)


@pytest.mark.parametrize("case", OURS, ids=lambda case: case["id"])
def test_published_case(case):
    inputs = as_arrays(case["inputs"], "float64")
    check(case, ADAPTERS[case["function"]](inputs), "float64")


@pytest.mark.slow
def test_published_cases_in_graphs_of_float32():
    for case in OURS:
        inputs = tf.nest.map_structure(
            lambda item: (
                tf.constant(item) if isinstance(item, np.ndarray) else item
            ),
            as_arrays(case["inputs"], "float32"),
        )
        outputs = tf.function(ADAPTERS[case["function"]])(inputs)
        check(case, outputs, "float32")


def test_no_published_case_is_left_out():
    assert {case["function"] for case in CASES} == (
        TESTED_WITH_WHAT_THEY_ARE_OF | {*ADAPTERS}
    )
