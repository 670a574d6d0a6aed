"""SimBa's networks, against Lee et al., 2025, and their published code."""

import keras
import numpy as np
import pytest
from gymnasium import spaces

import keras_rl2 as rl
from support.agents import EVERY_AGENT
from support.agents import KINDS
from support.agents import AnySpaceEnv
from support.agents import assert_equal_weights
from support.agents import differ
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import networks_of
from support.agents import slow
from support.agents import weights_of
from support.errors import raises

DICT = spaces.Dict(
    {
        "at": spaces.Box(-1.0, 1.0, (2, 2), np.float32),
        "gear": spaces.Discrete(3),
    }
)


def simba(name, env=None, **settings):
    case = EVERY_AGENT[name]
    env = make_env(case.pair) if env is None else env
    return make_eager_agent(case, env, network="simba", **settings)


def normalized(x, epsilon):
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / np.sqrt(x.var(axis=-1, keepdims=True) + epsilon)


def test_the_output_is_that_of_the_published_network():
    network = simba("SAC", hidden=(8, 8)).actor
    weights = {
        layer.name: layer.get_weights()
        for layer in network.layers
        if "normalization" not in layer.name and layer.weights
    }
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    found = network(x).numpy()

    def dense(name, x):
        kernel, bias = weights.pop(name)
        return x @ kernel + bias

    x = dense("embedding", x)
    for index in range(2):
        y = dense(f"hidden_{index}_wide", normalized(x, 1e-6))
        assert y.shape == (5, 4 * 8)
        x = x + dense(f"hidden_{index}", np.maximum(y, 0.0))
    expected = dense("output", normalized(x, 1e-6))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert not weights


def test_initial_weights_are_published():
    network = simba("SAC", hidden=(64,)).actor
    for name in ("embedding", "output"):
        kernel, bias = network.get_layer(name).get_weights()
        if kernel.shape[0] > kernel.shape[1]:
            kernel = kernel.T
        identity = np.eye(len(kernel))
        np.testing.assert_allclose(kernel @ kernel.T, identity, atol=1e-5)
        assert not bias.any()
    for name, inputs in (("hidden_0_wide", 64), ("hidden_0", 256)):
        kernel, bias = network.get_layer(name).get_weights()
        assert kernel.std() == pytest.approx((2.0 / inputs) ** 0.5, rel=0.05)
        assert not bias.any()


def test_sizes_are_published_unless_given():
    # Of the published code: embedding, blocks, normalizations and output.
    def count(inputs, width, blocks, outputs):
        block = 2 * width + (width + 1) * 4 * width + (4 * width + 1) * width
        first, last = (inputs + 1) * width, (width + 1) * outputs
        return first + blocks * block + 2 * width + last

    agent = rl.SAC.for_env("Pendulum-v1", network="simba", seed=0)

    def size(network):
        return sum(np.prod(v.shape) for v in network.trainable_variables)

    assert size(agent.actor) == count(3, 128, 1, 2)
    assert size(agent.critics[0]) == count(3 + 1, 512, 2, 1)
    agent = rl.PPO.for_env("Pendulum-v1", network="simba", hidden=(16,), seed=0)
    assert size(agent.critic) == count(3, 16, 1, 1)
    # Policies of PPO begin nearly uniform.
    assert np.abs(agent.actor.get_layer("output").kernel).max() < 0.02


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("PPO", {}),
        *slow(
            ("SAC", {}),
            *((name, {}) for name in ("TD3", "DQN", "IQL", "DiscreteCQL")),
            ("PPO", {"shared": True}),
            ("DQN", {"dueling": True}),
            ("SAC", {"dtype": "mixed_bfloat16"}),
        ),
    ],
)
def test_it_trains_and_is_saved(name, settings, tmp_path):
    case = EVERY_AGENT[name]
    env = AnySpaceEnv(DICT, case.action_space)
    agent = simba(name, env, **settings)
    before = weights_of(agent)
    agent.fit(case.make_dataset(env), epochs=1, verbose=0)
    for network in networks_of(agent).values():
        first = network[0] if isinstance(network, list) else network
        # Observations are normalised by their statistics.
        statistics = first.get_layer("at_normalization").count
        assert float(statistics) > 0
    assert differ(before, agent.get_weights())
    agent.save(tmp_path / "agent.keras")
    assert_equal_weights(
        keras.models.load_model(tmp_path / "agent.keras"), agent
    )


@pytest.mark.parametrize("name", KINDS)
def test_options_that_do_not_combine_are_refused(name):
    for settings in (
        {"hidden": (8, 4)},
        {"hidden": ()},
        {"normalization": "layer"},
        {"initialization": "fan_in"},
    ):
        with raises("network='simba' without images", "NetworkOptions"):
            simba(name, **settings)
    pictures = spaces.Box(0, 255, (8, 8), np.uint8)
    env = AnySpaceEnv(spaces.Dict({"seen": pictures}), spaces.Discrete(2))
    with raises("network='simba' without images", "seen"):
        rl.PPO.for_env(env, network="simba")
    with raises("without .*memory", "LSTMCell"):
        rl.PPO.for_env("CartPole-v1", network="simba", memory=cell())
    with raises("`network=None` for CrossQ", "simba"):
        rl.CrossQ.for_env("Pendulum-v1", network="simba")
    with raises("`network` to be", "mlp"):
        rl.PPO.for_env("CartPole-v1", network="mlp")


def cell():
    return keras.layers.LSTMCell(4)
