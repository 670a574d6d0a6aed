"""Each test in which values take turns has its row in `tests/turns.json`."""

import pytest

from support import turns


def test_the_table_is_of_the_tests_that_there_are(turns_to_take):
    """Of a run of some tests alone, their rows are compared."""
    wrong = turns.faults(turns.table(), turns_to_take)
    wrong += turns.gone(turns.table())
    assert not wrong, f"Run `{turns.COMMAND}`, for {', '.join(wrong)}"


def test_all_that_differ_by_their_loss_have_turns():
    rows = turns.table().values()
    had = {name for row in rows for name in row.get("name", ())}
    assert had >= {*turns.ANOTHER_LOSS}


TESTS = {
    "test_a.py::test_of_groups": {"name": [["PPO", "A2C"], ["DQN", "SAC"]]},
    "test_a.py::test_of_one_group": {"name": [["PPO", "A2C"]]},
    "test_a.py::test_without": {},
}


def test_a_row_that_fits_is_kept():
    rows = {
        "test_a.py::test_of_groups": {"name": ["A2C", "SAC"]},
        "test_a.py::test_of_one_group": {"name": ["PPO", "A2C"]},
    }
    assert turns.completed(rows, TESTS) == rows
    assert not turns.faults(rows, TESTS)


def test_who_had_the_fewest_turns_is_next():
    rows = {"test_a.py::test_of_groups": {"name": ["PPO"]}}
    completed = turns.completed(rows, TESTS)
    assert completed == {
        "test_a.py::test_of_groups": {"name": ["PPO", "DQN"]},
        "test_a.py::test_of_one_group": {"name": ["A2C"]},
    }
    assert turns.faults(rows, TESTS) == list(completed)


@pytest.mark.parametrize(
    "row", [{"name": ["PPO", "TD3"]}, {"seed": ["1"]}, {"name": []}]
)
def test_a_row_that_does_not_fit(row):
    key = "test_a.py::test_of_one_group"
    tests = {key: TESTS[key]}
    assert turns.faults({key: row}, tests) == [key]


def test_a_row_of_a_test_in_which_nothing_takes_turns():
    key = "test_a.py::test_without"
    assert turns.faults({key: {"name": ["PPO"]}}, TESTS)[-1] == key


def test_a_test_that_is_gone():
    key = "test_turns.py::test_a_test_that_is_gone"
    assert not turns.gone({key: {}})
    assert turns.gone({key: {}, f"{key}_by_now": {}}) == [f"{key}_by_now"]


def test_one_name_in_two_files():
    marks = pytest.mark.rotate(name=[["PPO"]])

    class Item:
        def __init__(self):
            self.callspec = type("Spec", (), {"params": {"name": "PPO"}})

        def get_closest_marker(self, name):
            return marks.mark if name == "rotate" else None

    collected = {f"{f}/test_a.py::test_b": [Item()] for f in ("one", "other")}
    with pytest.raises(ValueError, match=r"Received: test_a.py::test_b twice"):
        turns.groups_by_test(collected)
