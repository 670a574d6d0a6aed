"""What options of a command change of a preset."""

import argparse

import pytest

from keras_rl2.cli.argument_types import asked_settings
from keras_rl2.presets import Preset

PRESET = Preset(
    "PPO", "CartPole-v1", 1000, num_envs=4, env_kwargs={"a": 1, "b": 2}
)


def asked(environment="CartPole-v1", **given):
    arguments = argparse.Namespace(
        environment=environment,
        settings=given.pop("settings", []),
        env_kwargs=given.pop("env_kwargs", []),
        envs=given.pop("envs", None),
        steps=given.pop("steps", None),
    )
    return PRESET.with_settings(asked_settings(PRESET, arguments))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ("CartPole-v1", {"a": 1, "b": 3}),
        # Of another one, which may not take them.
        ("Acrobot-v1", {"b": 3}),
    ],
)
def test_arguments_of_the_environment_are_added(environment, expected):
    preset = asked(environment, env_kwargs=[("b", 3)])
    assert preset.env_kwargs == expected
    assert preset.environment == environment


def test_an_option_of_its_own_is_the_clearer_word():
    settings = [("num_envs", 2), ("total_steps", 500)]
    preset = asked(settings=settings, envs=8)
    assert (preset.num_envs, preset.total_steps) == (8, 500)
