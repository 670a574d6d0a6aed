"""Noisy dense layers, against the equations of Fortunato et al., 2018."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import keras_rl2 as rl
from keras_rl2.layers import NoisyDense
from keras_rl2.layers import noise_given

INPUTS = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)
NOISE = np.array([[4.0, -9.0, 1.0, -4.0, 0.25]], np.float32)


@pytest.fixture
def layer():
    layer = NoisyDense(3, "relu")
    layer.build((None, 2))
    generator = np.random.default_rng(0)
    layer.set_weights(
        [generator.normal(size=each.shape) for each in layer.weights]
    )
    return layer


def test_output_is_that_of_the_perturbed_weights(layer):
    kernel, bias, kernel_deviation, bias_deviation = layer.get_weights()
    # sign(x) sqrt(|x|) by hand
    of_inputs, of_units = np.array([2.0, -3.0]), np.array([1.0, -2.0, 0.5])
    kernel += kernel_deviation * np.outer(of_inputs, of_units)
    bias += bias_deviation * of_units
    expected = np.maximum(INPUTS @ kernel + bias, 0.0)
    with noise_given(ops.convert_to_tensor(NOISE)):
        found = layer(INPUTS).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_without_noise_it_is_dense(layer):
    kernel, bias, *_ = layer.get_weights()
    expected = np.maximum(INPUTS @ kernel + bias, 0.0)
    for training in (False, True):
        found = layer(INPUTS, training=training)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    with noise_given(None):
        np.testing.assert_array_equal(layer(INPUTS), found)


def test_each_row_may_have_its_own_noise(layer):
    noise = np.concatenate([NOISE, -NOISE[:, ::-1]])
    with noise_given(ops.convert_to_tensor(noise)):
        both = layer(INPUTS).numpy()
    for row in range(2):
        with noise_given(ops.convert_to_tensor(noise[row : row + 1])):
            one = layer(INPUTS[row : row + 1])
        np.testing.assert_allclose(one[0], both[row], rtol=1e-5)


def test_layers_take_their_noise_in_turn():
    network = keras.Sequential([keras.Input((2,))])
    network.add(NoisyDense(2, kernel_initializer="identity"))
    network.add(NoisyDense(1, kernel_initializer="ones"))
    noise = np.zeros((1, 7), np.float32)
    # The last number is the noise of the last unit: σ f(ε) = 0.5 / sqrt(2) * 2
    noise[0, -1] = 4.0
    with noise_given(ops.convert_to_tensor(noise)):
        found = float(network(INPUTS[:1])[0, 0])
    assert found == pytest.approx(-1.0 + 2.0 * 0.5 / 2.0**0.5, rel=1e-6)


def test_gradients_reach_the_deviations(layer):
    with tf.GradientTape() as tape, noise_given(ops.convert_to_tensor(NOISE)):
        loss = ops.sum(layer(INPUTS))
    for each in tape.gradient(loss, [v.value for v in layer.weights]):
        assert (each.numpy() != 0.0).any()


def test_initial_weights_are_published():
    agent = rl.DQN.for_env("CartPole-v1", hidden=(64,), noisy=True, seed=0)
    layer = agent.q_network.get_layer("output")
    kernel, bias, *deviations = layer.get_weights()
    # Means are uniform within ±1/sqrt(P), and deviations are 0.5/sqrt(P).
    for mean in (kernel, bias):
        assert np.abs(mean).max() <= 1.0 / 8.0
    assert kernel.std() == pytest.approx(1.0 / 8.0 / 3.0**0.5, rel=0.2)
    for deviation in deviations:
        np.testing.assert_allclose(deviation, 0.5 / 8.0)


def test_a_saved_layer_is_whole(layer, tmp_path):
    network = keras.Sequential([keras.Input((2,)), layer])
    network.save(tmp_path / "network.keras")
    loaded = keras.models.load_model(tmp_path / "network.keras")
    for one, other in zip(loaded.weights, layer.weights, strict=True):
        np.testing.assert_array_equal(one, other)
