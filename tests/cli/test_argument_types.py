"""Arguments of the command become numbers and settings of a preset."""

import argparse

import pytest

from keras_rl2.cli.parser import count
from keras_rl2.cli.parser import setting
from keras_rl2.cli.parser import whole_number
from keras_rl2.cli.train import asked_settings
from keras_rl2.presets import Preset


def test_whole_numbers_take_exponents_and_suffixes():
    for text, number in (
        ("0", 0),
        ("1e6", 1_000_000),
        ("2_000", 2000),
        ("100k", 100_000),
        ("1M", 1_000_000),
        ("1m", 1_000_000),
        ("1.1K", 1100),
        ("2.3M", 2_300_000),
    ):
        assert whole_number(text) == number, text
    for text in ("", "x", "1.5", "-1", "nan", "inf", "k", "1.0001k", "-1k"):
        with pytest.raises(argparse.ArgumentTypeError, match="a whole number"):
            whole_number(text)


def test_a_count_is_at_least_one():
    assert count("1") == 1
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1"):
        count("0")


def test_settings_are_keys_and_values_of_json_where_possible():
    for text, value in (
        ("1", 1),
        ("1e-3", 0.001),
        ("true", True),
        ("null", None),
        ("[64, 64]", [64, 64]),
        ('{"schedule": "linear"}', {"schedule": "linear"}),
        ("relu", "relu"),
        ('"1"', "1"),
        ("", ""),
        ("c=d", "c=d"),
    ):
        assert setting(f"a.b={text}") == ("a.b", value)
    for text in ("gamma", "=1", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="KEY=VALUE"):
            setting(text)


def test_options_change_a_preset():
    before = Preset(
        "PPO", "CartPole-v1", 1000, num_envs=4, env_kwargs={"a": 1, "b": 2}
    )

    def asked(**given):
        nothing = {"set": [], "env_kwargs": [], "envs": None}
        default = {**nothing, "environment": "CartPole-v1", "steps": None}
        arguments = argparse.Namespace(**default | given)
        return before.with_settings(asked_settings(before, arguments))

    assert asked(env_kwargs=[("b", 3)]).env_kwargs == {"a": 1, "b": 3}
    # Another environment may not take those of the preset.
    other = asked(environment="Acrobot-v1", env_kwargs=[("b", 3)])
    assert (other.environment, other.env_kwargs) == ("Acrobot-v1", {"b": 3})
    # An option of its own is the clearer word.
    settings = [("num_envs", 2), ("total_steps", 500)]
    preset = asked(set=settings, envs=8)
    assert (preset.num_envs, preset.total_steps) == (8, 500)
