"""The library against the published numbers of other libraries."""

import numpy as np
import pytest

from support import golden

CASES = golden.load_cases()
IDS = [case["id"] for case in CASES]


def tolerance(case, dtype):
    """Return rtol, atol: the published ones, tighter where digits allow."""
    published = case["tolerance"]
    if dtype == "float32":
        return max(published["rtol"], 1e-5), max(published["atol"], 1e-6)
    if case["id"] in golden.EXACT:
        return 1e-9, 1e-9
    return published["rtol"], max(published["atol"], 1e-9)


@pytest.mark.spread
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_published_case(case, graph, dtype):
    function = case["function"]
    if function in golden.SKIPPED:
        pytest.skip(f"{function}: {golden.SKIPPED[function]}")
    assert function in golden.ADAPTERS, f"no adapter for {function}"

    outputs = golden.run(case, dtype, graph)

    rtol, atol = tolerance(case, dtype)
    for name, expected in case["expected"].items():
        if (case["id"], name) in golden.NOT_OURS:
            continue
        expected = golden.as_arrays(expected, "float64")
        output = outputs[name]
        if not isinstance(expected, list):
            expected, output = [expected], [output]
        for one_output, one_expected in zip(output, expected, strict=True):
            np.testing.assert_allclose(
                one_output, one_expected, rtol, atol, err_msg=name
            )


def test_tables_name_existing_cases_and_functions():
    functions = {case["function"] for case in CASES}
    assert set(golden.SKIPPED) | set(golden.ADAPTERS) == functions
    assert not set(golden.SKIPPED) & set(golden.ADAPTERS)
    assert set(IDS) >= golden.EXACT
    assert {case for case, _ in golden.NOT_OURS} <= set(IDS)
