import warnings

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium.spaces import MultiDiscrete

import keras_rl2 as rl
from keras_rl2 import networks
from keras_rl2.layers import ObservationNormalization
from support.any_space_env import AnySpaceEnv

Box = gymnasium.spaces.Box


def kernels(model):
    return [w.numpy() for w in model.weights if w.path.endswith("kernel")]


def test_mlp_is_orthogonal_with_the_requested_gains():
    model = networks.mlp((4,), 2, hidden=(8, 8), output_gain=0.01, seed=0)
    first, second, last = kernels(model)
    np.testing.assert_allclose(first @ first.T, 2 * np.eye(4), atol=1e-5)
    np.testing.assert_allclose(second @ second.T, 2 * np.eye(8), atol=1e-5)
    np.testing.assert_allclose(last.T @ last, 1e-4 * np.eye(2), atol=1e-8)
    for bias in (w for w in model.weights if w.path.endswith("bias")):
        assert not bias.numpy().any()


def test_seeds():
    one, same, other, any_ = (
        kernels(networks.mlp((4,), 2, seed=s)) for s in (0, 0, 1, None)
    )
    for a, b, c, d in zip(one, same, other, any_, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()
        assert (a != d).any()
    # No two layers begin alike.
    square = kernels(networks.mlp((8,), 8, hidden=(8, 8), seed=0))
    assert (square[0] != square[1]).any()


@pytest.mark.parametrize("hidden", [(), (5,), (5, 6, 7)])
def test_widths(hidden):
    model = networks.mlp((4,), 3, hidden=hidden, activation="relu", seed=0)
    dense = [x for x in model.layers if isinstance(x, keras.layers.Dense)]
    assert [x.units for x in dense] == [*hidden, 3]
    activations = [x.activation.__name__ for x in dense]
    assert activations == ["relu"] * len(hidden) + ["linear"]


def test_normalisation_comes_first():
    model = networks.mlp((2, 3), 1, normalize_observations=True, seed=0)
    assert isinstance(model.layers[1], ObservationNormalization)
    assert model.layers[1].mean.shape == (2, 3)


@pytest.mark.parametrize("shape", [(36, 36, 1), (4, 44, 44)])
def test_cnn(shape):
    model = networks.nature_cnn(shape, 5, seed=0)
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (2, *shape)).astype("uint8")
    outputs = model(images).numpy()
    assert outputs.shape == (2, 5)
    assert (outputs[0] != outputs[1]).any()
    assert model.inputs[0].dtype == "uint8"


def test_cnn_has_the_parameters_of_the_paper():
    """Mnih et al., 2015."""
    convolutions = 8 * 8 * 4 * 32 + 32 + 4 * 4 * 32 * 64 + 64
    convolutions += 3 * 3 * 64 * 64 + 64
    dense = 7 * 7 * 64 * 512 + 512 + 512 * 6 + 6
    model = networks.nature_cnn((84, 84, 4), 6, seed=0)
    assert model.count_params() == convolutions + dense


def test_channels_first_and_last_are_one_network():
    last = networks.nature_cnn((40, 40, 3), 2, seed=0)
    first = networks.nature_cnn((3, 40, 40), 2, seed=0)
    images = np.random.default_rng(0).integers(0, 256, (2, 40, 40, 3))
    images = images.astype("uint8")
    np.testing.assert_allclose(
        last(images), first(images.transpose(0, 3, 1, 2)), rtol=1e-5, atol=1e-6
    )


def grid(shape, named=False, action=None):
    """Returns an environment of pictures, in a Dict if they are `named`."""
    space = Box(0, 1, shape, "uint8")
    if named:
        space = gymnasium.spaces.Dict({"grid": space, "at": Box(-1, 1, (2,))})
    return AnySpaceEnv(space, action or gymnasium.spaces.Discrete(4))


def channels_of(env, kind=rl.DQN, network="q_network", **given):
    """Returns the channels that the first convolution takes."""
    agent = kind.for_env(env, hidden=(8,), seed=0, **given)
    made = agent.given_networks()[network]
    layers = [
        inner
        for layer in (made[0] if isinstance(made, list) else made).layers
        for inner in getattr(layer, "layers", [layer])
    ]
    return next(
        layer.kernel.shape[2]
        for layer in layers
        if isinstance(layer, keras.layers.Conv2D)
    )


@pytest.mark.parametrize(
    ("shape", "channels"),
    [((6, 8, 12), 12), ((17, 8, 8), 8), ((6, 8, 8), 8), ((5, 7, 40), 40)],
)
def test_channels_are_last_unless_an_argument_says_first(shape, channels):
    for named in (False, True):
        with pytest.warns(UserWarning, match=r"`data_format`.*shape \("):
            assert channels_of(grid(shape, named)) == channels
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        first = {"data_format": "channels_first"}
        assert channels_of(grid(shape), **first) == shape[0]
        assert channels_of(grid(shape, True), **first) == shape[0]
        last = {"data_format": "channels_last"}
        assert channels_of(grid(shape), **last) == channels
    with pytest.raises(ValueError, match="data_format='first'"):
        channels_of(grid(shape), data_format="first")


@pytest.mark.parametrize(
    ("shape", "channels"),
    [
        ((3, 8, 8), 3),
        ((10, 36, 36), 10),
        ((10, 10, 7), 7),
        ((12, 9, 6), 6),
        ((8, 8, 12), 12),
    ],
)
def test_a_likely_reading_needs_no_argument(shape, channels):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert channels_of(grid(shape)) == channels


def test_widths_of_layers_may_be_an_array():
    agent = rl.PPO.for_env("CartPole-v1", hidden=np.array([8, 6]), seed=0)
    dense = [x.units for x in agent.actor.layers if hasattr(x, "units")]
    assert dense == [8, 6, 2]


def test_all_networks_of_an_agent_have_the_same_channels():
    env = grid((6, 8, 12), action=Box(-1, 1, (2,)))
    first = {"data_format": "channels_first"}
    for network in ("actor", "critic"):
        assert channels_of(env, rl.SAC, network, **first) == 6
    memory = keras.layers.GRUCell(4)
    assert channels_of(env, rl.PPO, "actor", memory=memory, **first) == 6


@pytest.mark.parametrize("shape", [(35, 36, 1), (84, 35), (36,) * 5, (16,)])
def test_cnn_refuses_shapes_that_are_no_image(shape):
    with pytest.raises(ValueError, match=r"at least 36 x 36.*Received"):
        networks.nature_cnn(shape, 2)
    smaller = tuple(max(size // 9, 1) for size in shape)
    with pytest.raises(ValueError, match=r"at least 5 x 5.*Received"):
        networks.small_cnn(smaller, 2)


@pytest.mark.parametrize(
    ("space", "shape", "name"),
    [
        (Box(-1, 1, (4,)), (None, 4), "Dense"),
        (Box(-1, 1, (2, 3)), (None, 2, 3), "Dense"),
        (gymnasium.spaces.Discrete(7, start=2), (None, 7), "Dense"),
        (Box(0, 255, (84, 84, 4), "uint8"), (None, 84, 84, 4), "Conv2D"),
        (Box(0, 255, (4, 84, 84), "uint8"), (None, 4, 84, 84), "Conv2D"),
        (Box(0, 255, (8, 8, 3), "uint8"), (None, 8, 8, 3), "Conv2D"),
        (Box(0, 255, (4, 8, 3), "uint8"), (None, 4, 8, 3), "Dense"),
        (Box(0, 255, (84, 84), "uint8"), (None, 84, 84), "Conv2D"),
        (Box(0, 1, (84, 84, 3), "float32"), (None, 84, 84, 3), "Conv2D"),
        (Box(-1, 1, (84, 84, 3), "float32"), (None, 84, 84, 3), "Dense"),
    ],
)
def test_network_for_a_space(space, shape, name):
    model = networks.network_for(
        space,
        2,
        hidden=(4,),
        activation="relu",
        normalize_observations=False,
        output_gain=0.1,
        seed=0,
        name="actor",
    )
    assert model.input_shape == shape
    assert model.output_shape == (None, 2)
    assert model.name == "actor"
    kinds = {type(layer).__name__ for layer in model.layers}
    assert ("Conv2D" in kinds) == (name == "Conv2D")


@pytest.mark.parametrize(
    ("hidden", "shared", "own"),
    [((), [], []), ((5,), [], [5]), ((5, 6, 7), [5, 6], [7])],
)
def test_streams_share_all_but_the_last_hidden_layer(hidden, shared, own):
    model = networks.mlp((4,), (1, 3), hidden=hidden, seed=0)
    dense = [x for x in model.layers if isinstance(x, keras.layers.Dense)]
    widths = sorted(layer.units for layer in dense)
    assert widths == sorted([*shared, *own, *own, 1, 3])
    assert model.output_shape == (None, 4)
    # Side by side, in their order.
    first = next(layer for layer in dense if layer.units == 1)
    before = model(np.ones((1, 4), "float32")).numpy()
    first.bias.assign([1.0])
    moved = model(np.ones((1, 4), "float32")).numpy() - before
    np.testing.assert_allclose(moved, [[1.0, 0.0, 0.0, 0.0]], atol=1e-6)
    assert (kernels(model)[-2][:, 0] != kernels(model)[-1][:, 0]).any()


@pytest.mark.parametrize(("hidden", "own"), [(None, 512), ((4,), 4)])
def test_streams_of_images(hidden, own):
    """Wang et al., 2016: convolutions are shared, 512 units are not."""
    space = Box(0, 255, (36, 36, 4), "uint8")
    model = networks.network_for(space, [1, 6], hidden=hidden, seed=0)
    dense = [x for x in model.layers if isinstance(x, keras.layers.Dense)]
    widths = sorted(layer.units for layer in dense)
    assert widths == sorted([1, 6, own, own])
    assert model.output_shape == (None, 7)


BUILDERS = {
    "mlp": lambda **asked: networks.mlp((4,), 2, hidden=(8, 6), **asked),
    "streams": lambda **asked: networks.mlp(
        (4,), (1, 2), hidden=(8, 6), **asked
    ),
    "critic": lambda **asked: networks.critic_for(
        Box(-1.0, 1.0, (4,)), 2, hidden=(8, 6), **asked
    ),
    "joined": lambda **asked: networks.joined_network(
        gymnasium.spaces.Dict({"a": Box(-1.0, 1.0, (4,))}),
        2,
        hidden=(8, 6),
        **asked,
    ),
    "pictures": lambda **asked: networks.nature_cnn(
        (36, 36, 1), 2, hidden=(8, 6), **asked
    ),
}
EVERY_BUILDER = pytest.mark.parametrize("make", BUILDERS.values(), ids=BUILDERS)


@EVERY_BUILDER
def test_hidden_layers_are_normalised_before_their_activation(make):
    kinds = keras.layers.LayerNormalization
    plain = make(seed=0)
    assert not any(isinstance(each, kinds) for each in plain.layers)
    model = make(seed=0, normalization="layer")
    widths = [
        each.output.shape[-1]
        for each in model.layers
        if isinstance(each, kinds)
    ]
    assert sorted(set(widths)) == [6, 8]
    for one, other in zip(kernels(plain), kernels(model), strict=True):
        np.testing.assert_array_equal(one, other)
    before = [e for e in model.layers if isinstance(e, kinds)][-1]
    values = keras.Model(model.inputs, before.output)
    arrays = [np.ones((3, *each.shape[1:])) for each in model.inputs]
    np.testing.assert_allclose(
        np.mean(values(arrays if len(arrays) > 1 else arrays[0]), axis=-1),
        0.0,
        atol=1e-5,
    )


def some_inputs(model, rows):
    generator = np.random.default_rng(0)
    return keras.tree.map_structure(
        lambda each: generator.normal(3.0, 2.0, (rows, *each.shape[1:])),
        model.input,
    )


@EVERY_BUILDER
def test_inputs_of_dense_layers_are_normalised_over_the_batch(make):
    model = make(seed=0, normalization="batch")
    for one, other in zip(kernels(make(seed=0)), kernels(model), strict=True):
        np.testing.assert_array_equal(one, other)
    layers = keras.layers
    dense = [each for each in model.layers if isinstance(each, layers.Dense)]
    norms = [
        each
        for each in model.layers
        if isinstance(each, layers.BatchNormalization)
    ]
    # A dense layer takes the output of a normalization, and nothing else.
    outputs = {id(each.output) for each in norms}
    assert {id(each.input) for each in dense} == outputs
    x = some_inputs(model, 64)
    before = [each.moving_mean.numpy() for each in norms]
    model(x)
    for each, mean in zip(norms, before, strict=True):
        np.testing.assert_array_equal(each.moving_mean, mean)
    model(x, training=True)
    assert all(
        (each.moving_mean.numpy() != mean).any()
        for each, mean in zip(norms, before, strict=True)
    )
    normalised = keras.Model(model.input, norms[0].output)
    np.testing.assert_allclose(
        np.mean(normalised(x, training=True), axis=0), 0.0, atol=1e-4
    )


def test_hidden_weights_have_a_largest_singular_value_of_1():
    kinds = keras.layers.SpectralNormalization
    model, same = (
        BUILDERS["mlp"](seed=0, normalization="spectral") for _ in range(2)
    )
    wrapped = [each for each in model.layers if isinstance(each, kinds)]
    assert sorted({each.layer.units for each in wrapped}) == [6, 8]
    x = some_inputs(model, 2)

    @tf.function
    def look():
        # Without a graph it would take many times as long.
        model(x, training=True)
        same(x, training=True)

    for _ in range(200):
        look()
    for each in wrapped:
        largest = np.linalg.norm(each.layer.kernel.numpy(), 2)
        np.testing.assert_allclose(largest, 1.0, rtol=1e-2)
    for one, other in zip(model.weights, same.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    last = [e for e in model.layers if isinstance(e, keras.layers.Dense)]
    assert last
    assert all("output" in each.name for each in last)


@pytest.mark.parametrize("make", BUILDERS.values())
def test_unknown_normalizations_are_refused(make):
    with pytest.raises(ValueError, match=r"`normalization`.*Received"):
        make(normalization="group")


def test_one_hot_rows_are_not_scaled_as_bytes():
    row = np.eye(7, dtype="float32")[:1]
    one, other = (
        networks.network_for(MultiDiscrete([3, 4], dtype=dtype), 2, seed=0)(row)
        for dtype in (np.int64, np.uint8)
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["mlp", "Dict", "Sequential"])
def test_features_are_the_inputs_of_the_head(kind):
    space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)
    if kind == "Dict":
        space = gymnasium.spaces.Dict({"near": space, "far": space})
    network = networks.network_for(space, 2, hidden=(8, 4), seed=0)
    inputs = np.ones((5, 3), "float32")
    inputs = [inputs, 2 * inputs] if kind == "Dict" else inputs
    if kind == "Sequential":
        layers = [keras.layers.Dense(units) for units in (8, 4, 2)]
        network = keras.Sequential([keras.Input((3,)), *layers])
    found = networks.features(network)
    head = network.layers[-1]
    np.testing.assert_array_equal(head(found(inputs)), network(inputs))
    # They are the same weights, and none is the head's.
    assert [id(each) for each in found.weights] == [
        id(each) for each in network.weights[:-2]
    ]


def test_features_need_one_known_input_of_the_head():
    class Custom(keras.Model):
        def __init__(self):
            super().__init__()
            self.head = keras.layers.Dense(2)

        def call(self, inputs):
            return self.head(inputs)

    custom = Custom()
    custom(np.ones((1, 3)))
    for network in (networks.mlp((3,), (1, 2)), custom):
        with pytest.raises(ValueError, match=r"Expected.*one input. Received"):
            networks.features(network)
