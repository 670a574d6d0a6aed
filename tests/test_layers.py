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


def test_rows_of_weight_0_do_not_count(layer):
    x = rows(20)
    x[10:] = 1e6
    layer.accumulate(x, np.arange(20) < 10)
    assert float(layer.count) == 10
    np.testing.assert_allclose(layer.running_mean, x[:10].mean(0), rtol=1e-5)


@pytest.mark.parametrize("value", [1e30, -3e38, np.inf, np.nan])
def test_what_has_no_finite_square_changes_nothing(layer, value):
    x = rows(20)
    assert layer.accumulate(x, np.ones(20))
    before = [np.array(weight) for weight in layer.weights]
    x[3, 1] = value
    assert not layer.accumulate(x, np.ones(20))
    for weight, expected in zip(layer.weights, before, strict=True):
        np.testing.assert_array_equal(weight, expected)
    # A row that does not count may hold anything.
    assert layer.accumulate(x, np.arange(20) != 3)
    assert float(layer.count) == 39


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
    layer = ObservationNormalization(clip=3.0, epsilon=0.1, name="scale")
    again = ObservationNormalization.from_config(layer.get_config())
    assert (again.clip, again.epsilon, again.name) == (3.0, 0.1, "scale")


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
