import keras
import numpy as np
import pytest

from keras_rl2.layers import ObservationNormalization


@pytest.fixture
def layer():
    layer = ObservationNormalization()
    layer.build((None, 3))
    return layer


def rows(count, seed=0):
    generator = np.random.default_rng(seed)
    values = generator.normal([1, -50, 1000], [2, 1, 30], (count, 3))
    return values.astype("float32")


def test_untouched_layer_is_the_identity(layer):
    x = rows(5) / 1000
    np.testing.assert_allclose(layer(x), x, rtol=1e-6)


def test_moments_equal_numpys_in_any_split(layer):
    x = rows(1000)
    for part in np.split(x, [1, 7, 500]):
        layer.accumulate(part, np.ones(len(part)))
    layer.commit()
    assert float(layer.count) == 1000
    np.testing.assert_allclose(layer.mean, x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(layer.variance, x.var(0), rtol=1e-3)
    normal = layer(x).numpy()
    np.testing.assert_allclose(normal.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(normal.std(0), 1, rtol=1e-3)


@pytest.mark.parametrize(
    ("mean", "deviation"),
    [(1e6, 1.0), (1e8, 1.0), (-1e8, 100.0), (1e8, 1e8), (1e-8, 1e-10)],
)
def test_a_large_mean_hides_no_small_deviation(mean, deviation):
    layer = ObservationNormalization()
    layer.build((None, 2))
    x = np.full((30 * 2048, 2), 1234.567, "float32")
    x[:, 0] = np.random.default_rng(0).normal(mean, deviation, len(x))
    for part in np.split(x, 30):
        layer.accumulate(part, np.ones(2048))
    layer.commit()
    # In float32, the neighbours of 1e8 are 8 away.
    wide = x[:, 0].astype("float64")
    found = float(layer.mean[0]), float(layer.variance[0]) ** 0.5
    assert found == pytest.approx((wide.mean(), wide.std()), rel=0.01)
    assert float(layer(x[:1])[0, 1]) == 0.0


def test_rows_of_weight_0_do_not_count(layer):
    x = rows(20)
    x[10:] = 1e6
    layer.accumulate(x, np.arange(20) < 10)
    assert float(layer.count) == 10
    np.testing.assert_allclose(layer.running_mean, x[:10].mean(0), rtol=1e-5)


@pytest.mark.parametrize("count", [20, 2000])
def test_rows_without_a_finite_square_change_nothing(layer, count):
    assert layer.accumulate(rows(count), np.ones(count))
    before = [np.array(weight) for weight in layer.weights]
    x = rows(20)
    for value in (1e30, -3e38, np.inf, np.nan):
        x[3, 1] = value
        assert not layer.accumulate(x, np.ones(20))
        for weight, expected in zip(layer.weights, before, strict=True):
            np.testing.assert_array_equal(weight, expected)
    # A row that does not count may hold anything.
    assert layer.accumulate(x, np.arange(20) != 3)
    assert float(layer.count) == count + 19


def test_no_rows_change_nothing(layer):
    layer.accumulate(rows(4), np.zeros(4))
    layer.commit()
    assert float(layer.count) == 0
    np.testing.assert_array_equal(layer.mean, [0, 0, 0])
    np.testing.assert_array_equal(layer.variance, [1, 1, 1])


def test_accumulating_is_not_seen_before_commit(layer):
    x = rows(5)
    before = layer(x).numpy()
    layer.accumulate(x, np.ones(5))
    np.testing.assert_array_equal(layer(x), before)
    layer.commit()
    assert (layer(x).numpy() != before).any()


# What is far off.


def moments_after(count, value, **arguments):
    """Returns a layer that saw `count` rows of 1 number, and then a value."""
    layer = ObservationNormalization(**arguments)
    layer.build((None, 1))
    layer.accumulate(np.resize([-2.0, 2.0], (count, 1)), np.ones(count))
    assert layer.accumulate(np.array([[value]]), np.ones(1))
    return float(layer.running_mean[0]), float(layer.running_variance[0])


@pytest.mark.parametrize(
    ("count", "deviations"), [(1000, 1000**0.5), (40_000, 100.0)]
)
@pytest.mark.parametrize("value", [1e8, -1e15])
def test_a_value_far_off_counts_like_one_at_the_limit(count, deviations, value):
    at_limit = moments_after(count, np.sign(value) * 2.0 * deviations)
    far_off = moments_after(count, value)
    np.testing.assert_allclose(far_off, at_limit, rtol=1e-5)
    # One value doubles the variance, at most.
    assert far_off[1] < 4.0 * (1.0 + min(1.0, 100.0**2 / count)) * 1.001


@pytest.mark.parametrize("arguments", [{"max_deviations": None}, {}])
def test_without_a_limit_or_early_on_everything_is_taken_in(arguments):
    count = 40_000 if arguments else 998
    _, variance = moments_after(count, 1e8, **arguments)
    assert variance > 1e11


def test_rows_within_the_limit_count_bit_for_bit():
    limited, plain = (
        ObservationNormalization(max_deviations=most) for most in (100.0, None)
    )
    x = rows(4000)
    # 40 deviations: the limit after 2000 rows is 44.
    x[3000] = [81.0, -90.0, -200.0]
    for layer in (limited, plain):
        layer.build((None, 3))
        for part in np.split(x, [2000]):
            layer.accumulate(part, np.ones(len(part)))
    for ours, theirs in zip(limited.weights, plain.weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("constant", [0.0, 0.1, -7e5])
def test_an_entry_that_was_constant_is_exempt(constant):
    layer = ObservationNormalization()
    layer.build((None, 1))
    for _ in range(2):
        layer.accumulate(np.full((3000, 1), constant), np.ones(3000))
    x = np.array([[constant], [2.0]], "float32")
    np.testing.assert_array_equal(layer.bounded(x), x)


def test_a_flag_seldom_set_is_not_far_off():
    """One different row among n is sqrt(n) deviations off."""
    layer = ObservationNormalization()
    layer.build((None, 1))
    x = (np.arange(9000) == 500).astype("float32")[:, None]
    layer.accumulate(x, np.ones(9000))
    np.testing.assert_array_equal(layer.bounded(x), x)


@pytest.mark.parametrize("batch", [1, 500])
def test_a_lasting_shift_is_followed(batch):
    """The shift is 1e4 deviations. The limit grows with the accepted rows."""
    layer = ObservationNormalization()
    layer.build((None, 1))
    generator = np.random.default_rng(0)
    layer.accumulate(generator.normal(size=(20_000, 1)), np.ones(20_000))
    for _ in range(400 // batch + 10):
        x = generator.normal(1e4, 1.0, (batch, 1)).astype("float32")
        layer.accumulate(x, np.ones(batch))
    np.testing.assert_array_equal(layer.bounded(x), x)
    layer.commit()
    # As far as `clip` lets through.
    assert abs(layer(x).numpy()).max() < 10.0


def test_outliers_in_rows_of_weight_zero_are_left_out(layer):
    for _ in range(2):
        layer.accumulate(rows(1000), np.ones(1000))
    x = rows(20)
    x[10:] = 1e8
    layer.accumulate(x, np.arange(20) < 10)
    assert float(layer.count) == 2010
    np.testing.assert_allclose(
        layer.running_variance, rows(1000).var(0), rtol=0.05
    )


def test_moments_tell_of_each_value_far_off():
    """`are_ordinary` may miss an ordinary row, and never an outlier."""
    for seed in range(20):
        generator = np.random.default_rng(seed)
        layer = ObservationNormalization()
        layer.build((None, 2))
        count = int(10 ** generator.uniform(3, 4.5))
        layer.accumulate(generator.normal(3.0, 2.0, (count, 2)), np.ones(count))
        x = generator.normal(3.0, 2.0, (int(10 ** generator.uniform(0, 3)), 2))
        weight = np.ones(len(x))
        ordinary = layer.are_ordinary(layer.moments_with(x, weight))
        assert len(x) > 0.4 * min(count, 1e4) or ordinary, seed
        limit = min(count**0.5, 100.0)
        x[0, 1] = 3.0 + 2.0 * limit * generator.choice([-1.03, 1.03])
        assert layer.bounded(x).numpy()[0, 1] != np.float32(x[0, 1]), seed
        assert not layer.are_ordinary(layer.moments_with(x, weight)), seed


def test_a_limit_of_zero_deviations_is_refused():
    with pytest.raises(ValueError, match="max_deviations"):
        ObservationNormalization(max_deviations=0.0)


def test_values_are_clipped_and_constant_entries_stay_finite():
    layer = ObservationNormalization(clip=2.0)
    layer.build((None, 1))
    layer.accumulate(np.ones((5, 1)), np.ones(5))
    layer.commit()
    np.testing.assert_array_equal(
        layer(np.array([[1.0], [5.0], [-5.0]])), [[0.0], [2.0], [-2.0]]
    )


def test_images_have_statistics_of_each_pixel():
    layer = ObservationNormalization()
    layer.build((None, 2, 2))
    x = np.arange(12.0).reshape(3, 2, 2)
    layer.accumulate(x, np.array([1.0, 1.0, 0.0]))
    np.testing.assert_allclose(layer.running_mean, x[:2].mean(0))


def test_statistics_are_not_trained(layer):
    assert layer.trainable_variables == []
    assert len(layer.non_trainable_variables) == 5


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_mixed_precision_normalises_in_float32(dtype):
    layer = ObservationNormalization(dtype=dtype)
    layer.build((None, 1))
    layer.mean.assign([1000.0])
    x = layer(np.array([[1001.0], [1003.0]], "float32"))
    assert x.dtype == layer.compute_dtype
    np.testing.assert_array_equal(x.numpy().astype("float32"), [[1], [3]])


def test_config_round_trip():
    layer = ObservationNormalization(
        clip=3.0, epsilon=0.1, max_deviations=5.0, name="scale"
    )
    config = layer.get_config()
    again = ObservationNormalization.from_config(config)
    assert (again.clip, again.epsilon, again.name) == (3.0, 0.1, "scale")
    assert again.max_deviations == 5.0
    # As earlier releases have saved it.
    del config["max_deviations"]
    again = ObservationNormalization.from_config(config)
    assert again.max_deviations == 100.0


def test_a_model_saves_the_statistics(tmp_path):
    model = keras.Sequential(
        [keras.Input((3,)), ObservationNormalization(), keras.layers.Dense(1)]
    )
    x = rows(10)
    model.layers[0].accumulate(x, np.ones(10))
    model.layers[0].commit()
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(x), model(x))
    assert float(again.layers[0].count) == 10
