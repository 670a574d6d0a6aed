import argparse

import pytest

from keras_rl2.cli.argument_types import count
from keras_rl2.cli.argument_types import setting
from keras_rl2.cli.argument_types import whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("1e6", 1_000_000),
        ("2_000", 2000),
        ("100k", 100_000),
        ("1M", 1_000_000),
        ("1m", 1_000_000),
        ("1.1K", 1100),
        ("2.3M", 2_300_000),
    ],
)
def test_whole_numbers(text, number):
    assert whole_number(text) == number


@pytest.mark.parametrize(
    "text",
    ["", "x", "1.5", "-1", "nan", "inf", "k", "1.0001k", "-1k", "2g", "nank"],
)
def test_other_numbers(text):
    with pytest.raises(argparse.ArgumentTypeError, match="a whole number"):
        whole_number(text)


def test_a_count_is_at_least_one():
    assert count("1") == 1
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1"):
        count("0")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b=1", 1),
        ("a.b=1e-3", 0.001),
        ("a.b=true", True),
        ("a.b=null", None),
        ("a.b=[64, 64]", [64, 64]),
        ('a.b={"schedule": "linear"}', {"schedule": "linear"}),
        ("a.b=relu", "relu"),
        ('a.b="1"', "1"),
        ("a.b=", ""),
        ("a.b=c=d", "c=d"),
    ],
)
def test_values_are_json_where_possible(text, value):
    assert setting(text) == ("a.b", value)


@pytest.mark.parametrize("text", ["gamma", "=1", ""])
def test_settings_have_a_key(text):
    with pytest.raises(argparse.ArgumentTypeError, match="KEY=VALUE"):
        setting(text)
