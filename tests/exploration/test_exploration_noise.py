"""The contract of every noise, and the distribution of each."""

import json
import math

import keras
import numpy as np
import pytest

from keras_rl2.exploration import GaussianNoise
from keras_rl2.exploration import OrnsteinUhlenbeckNoise
from keras_rl2.exploration import PinkNoise
from keras_rl2.exploration import exploration_noise

DECAY = keras.optimizers.schedules.PolynomialDecay(0.5, 100, 0.1)
NOISES = {
    "gaussian": GaussianNoise(0.3),
    "gaussian_schedule": GaussianNoise(DECAY),
    "gaussian_range": GaussianNoise(0.3, lowest=0.1),
    "ornstein_uhlenbeck": OrnsteinUhlenbeckNoise(0.3, theta=0.5, dt=0.1),
    "ornstein_uhlenbeck_schedule": OrnsteinUhlenbeckNoise(DECAY),
    "pink": PinkNoise(0.3),
    "pink_schedule": PinkNoise(DECAY),
}


def generator(seed=0):
    return np.random.default_rng(seed)


class Ones:
    """A generator that always draws 1."""

    def standard_normal(self, shape, dtype=float):
        return np.ones(shape, dtype)


@pytest.fixture(params=NOISES)
def noise(request):
    return NOISES[request.param]


def test_draws_are_float32_and_repeat_with_the_seed(noise):
    one, state = noise.draw(generator(3), [5, 3, 2])
    assert one.shape == (5, 3, 2)
    assert one.dtype == "float32"
    assert state is None or len(state) == 3
    again, _ = noise.draw(generator(3), (5, 3, 2))
    other, _ = noise.draw(generator(4), (5, 3, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_draws_continue_from_a_state_without_changing_it(noise):
    whole, last = noise.draw(generator(), (20, 3, 2))
    parts = generator()
    first, state = noise.draw(parts, (10, 3, 2))
    kept = first.copy(), np.array(state)
    nothing, after = noise.draw(generator(), (0, 3, 2), state=state)
    assert nothing.shape == (0, 3, 2)
    np.testing.assert_array_equal(after, state)
    second, after = noise.draw(parts, (10, 3, 2), state=state)
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)
    np.testing.assert_array_equal(after, last)
    if state is not None:
        after += 1.0
        np.testing.assert_array_equal(state, kept[1])
        state += 1.0
    np.testing.assert_array_equal(first, kept[0])


def test_config_is_plain_json_and_makes_an_equal_noise(noise):
    text = json.dumps(
        keras.saving.serialize_keras_object(noise), allow_nan=False
    )
    assert '"registered_name": "keras_rl2>' in text
    again = keras.saving.deserialize_keras_object(json.loads(text))
    assert type(again) is type(noise)
    assert again == noise
    assert type(noise).from_config(noise.get_config()) == noise
    np.testing.assert_array_equal(
        again.draw(generator(), (5, 3, 2), step=50)[0],
        noise.draw(generator(), (5, 3, 2), step=50)[0],
    )


def test_equal_are_those_of_one_class_and_config():
    assert GaussianNoise(0.2) == GaussianNoise(np.float64(0.2))
    assert GaussianNoise(0.2) != GaussianNoise(0.3)
    assert GaussianNoise(0.2) != OrnsteinUhlenbeckNoise(0.2)
    assert GaussianNoise(0.2) != 0.2
    assert GaussianNoise(1).get_config() == {"scale": 1.0}
    assert OrnsteinUhlenbeckNoise(dt=0.1) != OrnsteinUhlenbeckNoise()


def test_wrong_settings_are_refused_at_construction():
    for scale in (
        -0.1, math.nan, math.inf, "0.1", None, True, [0.1], lambda s: 1,
    ):  # fmt: skip
        for kind in (GaussianNoise, OrnsteinUhlenbeckNoise):
            with pytest.raises(ValueError, match=r"Received: scale="):
                kind(scale)
    for lowest in (-0.1, math.nan, math.inf, 0.2):
        with pytest.raises(ValueError, match=r"Received: lowest="):
            GaussianNoise(lowest=lowest)
    # Nor are processes made that would not settle.
    for settings in (
        {"theta": 0.0},
        {"theta": -1.0},
        {"dt": 0.0},
        {"dt": math.inf},
        {"theta": 2.0, "dt": 1.0},
    ):
        with pytest.raises(ValueError, match="Received"):
            OrnsteinUhlenbeckNoise(**settings)


@pytest.mark.parametrize(
    ("step", "scale"), [(0, 0.5), (50, 0.3), (100, 0.1), (10**9, 0.1)]
)
def test_schedule_is_asked_at_the_step_of_the_draw(step, scale):
    drifting = OrnsteinUhlenbeckNoise(DECAY, theta=0.5, dt=0.25)
    noise, _ = GaussianNoise(DECAY).draw(Ones(), (2, 1, 1), step)
    np.testing.assert_allclose(noise, scale, rtol=1e-6)
    noise, _ = drifting.draw(Ones(), (1, 1, 1), step)
    np.testing.assert_allclose(noise, scale * 0.5, rtol=1e-6)


def test_gaussian_noise_is_independent_and_of_the_scale():
    noise, _ = GaussianNoise(0.4).draw(generator(), (1000, 50, 2))
    noise = noise.astype("float64")
    # Deviations of the estimates: 0.0013, 0.0009 and 0.003.
    assert abs(noise.mean()) < 0.005
    assert abs(noise.std() - 0.4) < 0.004
    following = np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]
    beside = np.corrcoef(noise[..., 0].ravel(), noise[..., 1].ravel())[0, 1]
    assert abs(following) < 0.015
    assert abs(beside) < 0.02


class Halves(Ones):
    """A generator whose uniform numbers are 0, 1/2 and 1."""

    def random(self, shape):
        return np.array([0.0, 0.5, 1.0]).reshape(shape)


def test_each_environment_has_a_scale_within_a_range():
    noise = GaussianNoise(0.4, lowest=0.1)
    drawn, state = noise.draw(Halves(), (2, 3, 1))
    np.testing.assert_allclose(drawn[..., 0], [[0.1, 0.25, 0.4]] * 2)
    # It is kept, and follows a schedule.
    drawn, _ = noise.draw(Ones(), (1, 3, 1), state=state)
    np.testing.assert_allclose(drawn[0, :, 0], [0.1, 0.25, 0.4])
    drawn, _ = GaussianNoise(DECAY, 0.1).draw(Ones(), (1, 3, 1), 50, state)
    np.testing.assert_allclose(drawn[0, :, 0], [0.1, 0.2, 0.3], rtol=1e-6)


def test_scales_of_environments_are_uniform():
    noise, _ = GaussianNoise(0.4, lowest=0.001).draw(generator(), (500, 400, 1))
    scales = np.sort(noise.std(axis=(0, 2)))
    # Seo et al., 2025: uniform between 0.001 and 0.4, its settings.
    np.testing.assert_allclose(
        scales, np.linspace(0.001, 0.4, 400), rtol=0, atol=0.04
    )


def test_ornstein_uhlenbeck_noise_by_hand():
    noise = OrnsteinUhlenbeckNoise(0.2, theta=0.5, dt=0.25)
    # Kept: 1 - 0.5 * 0.25 = 0.875. Added: 0.2 * sqrt(0.25) = 0.1.
    path, state = noise.draw(Ones(), (3, 1, 1))
    np.testing.assert_allclose(path.ravel(), [0.1, 0.1875, 0.2640625])
    path, state = noise.draw(Ones(), (1, 1, 1), state=[[-0.8]])
    np.testing.assert_allclose(path.ravel(), [-0.6])
    np.testing.assert_allclose(state, [[-0.6]])


def test_a_state_of_zeros_restarts_the_noise_of_its_environment():
    noise = OrnsteinUhlenbeckNoise(0.2, theta=0.5, dt=0.25)
    _, state = noise.draw(Ones(), (3, 2, 1))
    state[0] = 0.0
    path, _ = noise.draw(Ones(), (1, 2, 1), state=state)
    np.testing.assert_allclose(path[0, 0], [0.1])
    np.testing.assert_allclose(path[0, 1], [0.2640625 * 0.875 + 0.1])


def test_ornstein_uhlenbeck_noise_spreads_as_an_autoregression_does():
    noise = OrnsteinUhlenbeckNoise()
    path, _ = noise.draw(generator(), (100, 5000, 1))
    kept = 1 - 0.15 * 0.01
    steps = np.arange(1, 101)
    # Variance after t steps: σ² dt (1 - kept^2t) / (1 - kept²).
    variance = 0.2**2 * 0.01 * (1 - kept ** (2 * steps)) / (1 - kept**2)
    found = path.astype("float64").std(axis=(1, 2))
    np.testing.assert_allclose(found, np.sqrt(variance), rtol=0.05)


def test_pink_noise_is_correlated_over_all_spans():
    drawn, _ = PinkNoise(2.0).draw(generator(), (4000, 200, 2))
    kept = np.exp([-1 / 4, -1 / 16, -1 / 64, -1 / 256])
    for lag in (1, 4, 16, 64, 256):
        measured = np.mean(drawn[lag:] * drawn[:-lag]) / 4.0
        assert measured == pytest.approx(np.sum(kept**lag) / 5, abs=0.02)
    # Each step is distributed alike, the first one too.
    assert np.std(drawn) == pytest.approx(2.0, rel=0.02)
    first, _ = PinkNoise(2.0).draw(generator(1), (1, 4000, 2))
    assert np.std(first) == pytest.approx(2.0, rel=0.05)


def test_pink_noise_has_the_power_of_its_name():
    drawn, _ = PinkNoise(1.0).draw(generator(), (2048, 200, 1))
    power = np.mean(np.abs(np.fft.rfft(drawn[..., 0], axis=0)) ** 2, axis=1)
    # From a period of 512 steps to one of 8, about 1 / frequency.
    frequency = np.arange(4, 257)
    slope, _ = np.polyfit(np.log(frequency), np.log(power[frequency]), 1)
    assert slope == pytest.approx(-1.0, abs=0.15)


def test_short_forms_stand_for_noise():
    assert exploration_noise(None) is None
    noise = GaussianNoise(DECAY)
    assert exploration_noise(noise) is noise
    for short, expected in (
        (0.3, GaussianNoise(0.3)),
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
            {"class_name": "gaussian", "config": {"scale": DECAY}},
            GaussianNoise(DECAY),
        ),
    ):
        assert exploration_noise(short) == expected, short


@pytest.mark.parametrize(
    "unknown", ["brown", {"class_name": "brown", "config": {}}]
)
def test_unknown_names_are_answered_with_the_known(unknown):
    with pytest.raises(
        ValueError, match=r"'ornstein_uhlenbeck', 'pink'.*'brown'"
    ):
        exploration_noise(unknown)


@pytest.mark.parametrize(
    "wrong",
    [
        -0.1,
        GaussianNoise,
        DECAY,
        {"scale": 0.1},
        {"class_name": "gaussian", "config": {"scale": -1.0}},
        keras.saving.serialize_keras_object(keras.layers.Dense(1)),
    ],
)
def test_other_objects_than_noises_are_refused(wrong):
    with pytest.raises(ValueError, match=r"Expected .*Received"):
        exploration_noise(wrong)
