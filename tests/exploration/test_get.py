"""The short forms that stand for exploration noise."""

import math

import keras
import numpy as np
import pytest

from keras_rl2.exploration import GaussianNoise
from keras_rl2.exploration import OrnsteinUhlenbeckNoise
from keras_rl2.exploration import exploration_noise

SCHEDULE = keras.optimizers.schedules.PolynomialDecay(0.5, 100, 0.1)


@pytest.mark.parametrize(
    ("short", "noise"),
    [
        (0.3, GaussianNoise(0.3)),
        (0, GaussianNoise(0.0)),
        (np.float32(0.25), GaussianNoise(0.25)),
        ("gaussian", GaussianNoise(0.1)),
        ("ornstein_uhlenbeck", OrnsteinUhlenbeckNoise(0.2, 0.15, 0.01)),
        ({"class_name": "gaussian"}, GaussianNoise()),
        (
            {"class_name": "ornstein_uhlenbeck", "config": {"dt": 0.1}},
            OrnsteinUhlenbeckNoise(dt=0.1),
        ),
        (
            keras.saving.serialize_keras_object(OrnsteinUhlenbeckNoise(0.7)),
            OrnsteinUhlenbeckNoise(0.7),
        ),
        (
            keras.saving.serialize_keras_object(GaussianNoise(SCHEDULE)),
            GaussianNoise(SCHEDULE),
        ),
        (
            {"class_name": "gaussian", "config": {"scale": SCHEDULE}},
            GaussianNoise(SCHEDULE),
        ),
    ],
)
def test_short_forms(short, noise):
    assert exploration_noise(short) == noise


def test_none_is_no_noise():
    assert exploration_noise(None) is None


def test_an_object_is_taken_as_it_is():
    noise = GaussianNoise(SCHEDULE)
    assert exploration_noise(noise) is noise


def test_unknown_names_are_answered_with_the_known():
    for unknown in ("brown", {"class_name": "brown", "config": {}}):
        with pytest.raises(
            ValueError, match=r"'ornstein_uhlenbeck', 'pink'.*'brown'"
        ):
            exploration_noise(unknown)


@pytest.mark.parametrize(
    "wrong",
    [
        -0.1,
        math.nan,
        math.inf,
        True,
        [0.1],
        np.array([0.1, 0.2]),
        GaussianNoise,
        SCHEDULE,
        {},
        {"scale": 0.1},
        {"class_name": "gaussian", "scale": 0.1},
        {"class_name": "gaussian", "config": {"sigma": 0.1}},
        {"class_name": "gaussian", "config": {"scale": -1.0}},
        {"class_name": "gaussian", "config": 0.1},
        {"class_name": ["gaussian"]},
        {1: 2},
        keras.saving.serialize_keras_object(keras.layers.Dense(1)),
        {
            **keras.saving.serialize_keras_object(GaussianNoise()),
            "registered_name": "keras_rl2>NoSuchNoise",
            "class_name": "NoSuchNoise",
        },
    ],
    # Not its text, which may hold an address that differs in each process.
    ids=lambda wrong: type(wrong).__name__,
)
def test_anything_else_is_refused(wrong):
    with pytest.raises(ValueError, match=r"Expected .*Received"):
        exploration_noise(wrong)
