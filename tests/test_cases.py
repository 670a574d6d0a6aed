"""A test that loops over cases names the case in which it failed."""

import pytest

from support.cases import name_case


def fail_at(number):
    """Fails within the loops of this function."""
    for one in "ab":
        for two, (three, _) in enumerate([(0, 0), (1, 0), (2, 0)]):
            assert (one, two, three) != ("b", number, number)


def raise_late():
    """Fails after its loop."""
    for one in "ab":
        assert one
    raise ValueError(one)


def test_a_failure_names_the_variables_of_its_loops():
    with pytest.raises(AssertionError) as failed:
        fail_at(2)
    name_case(failed.value)
    assert failed.value.__notes__ == ["Case: one='b', two=2, three=2"]


def test_each_function_on_the_way_names_its_case():
    def call():
        for number in (7, 1):
            fail_at(number)

    with pytest.raises(AssertionError) as failed:
        call()
    name_case(failed.value)
    assert failed.value.__notes__ == ["Case: number=1, one='b', two=1, three=1"]


def test_a_failure_outside_of_a_loop_names_no_case():
    with pytest.raises(ValueError, match="b") as failed:
        raise_late()
    name_case(failed.value)
    assert not hasattr(failed.value, "__notes__")
