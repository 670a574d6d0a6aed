"""Layers that count rows, or compute something else when they are trained."""

import gymnasium
import keras
import numpy as np
import pytest
import tensorflow as tf
from gymnasium.vector import AutoresetMode
from gymnasium.vector import SyncVectorEnv

import keras_rl2 as rl
from keras_rl2.networks.model_layers import counting_layers
from keras_rl2.networks.model_layers import mode_layers
from keras_rl2.training.rounds import GraphRound
from support.agents import assert_equal_weights
from support.agents import slow
from support.agents import weights_of
from support.stock_layers import LAYERS
from support.stock_layers import network

BY_MODE = (
    "Dropout",
    "GaussianNoise",
    "BatchNormalization",
    "SpectralNormalization",
)
NEXT_STEP = AutoresetMode.NEXT_STEP


class Around5(gymnasium.Env):
    """Observations N(5, 1), in episodes of 3 steps."""

    observation_space = gymnasium.spaces.Box(-100.0, 100.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation(), {}

    def step(self, action):
        self.steps += 1
        return self.observation(), 1.0, False, self.steps == 3, {}

    def observation(self):
        return self.np_random.normal(5.0, 1.0, 2).astype(np.float32)


def around_5(mode):
    return SyncVectorEnv([Around5] * 2, autoreset_mode=mode)


class CountingBatch(keras.layers.BatchNormalization):
    """Counts the rows of its statistics, which are those of one batch."""

    def __init__(self):
        super().__init__(momentum=0.0)
        # In an object that Keras does not take for weights of its own.
        self.counter = lambda: None
        self.counter.rows = tf.Variable(0)

    def call(self, inputs, training=None, mask=None):
        if training:
            self.counter.rows.assign_add(tf.shape(inputs)[0])
        return super().call(inputs, training=training, mask=mask)


def counting(name, size, **compile_arguments):
    """Returns an agent whose networks begin with a layer that counts."""
    layers, networks = [], []
    for units in (2,) if name == "PQN" else (2, 1):
        inputs = keras.Input((size,))
        layers.append(CountingBatch())
        outputs = keras.layers.Dense(units)(layers[-1](inputs))
        networks.append(keras.Model(inputs, outputs))
    agent = getattr(rl, name)(*networks, seed=0)
    agent.compile(keras.optimizers.SGD(0.0), **compile_arguments)
    return agent, layers


# Rows that are no data.


@pytest.mark.parametrize(
    "how", [{"jit_compile": True}, {"run_eagerly": True}], ids=["xla", "eager"]
)
@pytest.mark.parametrize(
    ("name", "batch_size"),
    [
        ("A2C", None),
        ("PPO", 12),
        ("REINFORCE", None),
        *slow(("A2C", 12), ("PPO", None), ("APPO", 12), ("REINFORCE", 4)),
        *slow(("PQN", 12), ("PQN", None)),
    ],
)
def test_statistics_are_those_of_the_steps_alone(name, batch_size, how):
    # 2 * 16 rows, of which resets and the rest of minibatches do not count.
    agent, layers = counting(name, 2, **how)
    rollouts = rl.RolloutDataset(
        around_5(NEXT_STEP),
        horizon=16,
        passes=2,
        batch_size=batch_size,
        seed=0,
    )
    agent.fit(rollouts, verbose=0)
    steps = rollouts.valid_samples("observation")
    assert 0 < len(steps) < 32
    for layer in layers:
        assert int(layer.counter.rows) == 2 * len(steps)
        if batch_size is None:
            np.testing.assert_allclose(
                layer.moving_mean, steps.mean(axis=0), rtol=1e-5
            )


def test_a2c_counts_no_final_observation():
    agent, layers = counting("A2C", 2)
    rollouts = rl.RolloutDataset(
        around_5(AutoresetMode.SAME_STEP), 8, 1, None, seed=0
    )
    agent.fit(rollouts, verbose=0)
    assert [int(layer.counter.rows) for layer in layers] == [16, 16]
    seen = rollouts.valid_samples("observation")
    for layer in layers:
        np.testing.assert_allclose(
            layer.moving_mean, seen.mean(axis=0), rtol=1e-5
        )


@pytest.mark.parametrize(
    ("name", "batch_size"), slow(("A2C", None), ("PPO", 12))
)
def test_graph_environments_show_the_steps_alone(name, batch_size):
    agent, layers = counting(name, 4)
    env = rl.envs.GraphVectorEnv("CartPole-v1", 2)
    rollouts = rl.RolloutDataset(env, 16, 1, batch_size, seed=0)
    agent.fit(rollouts, verbose=0)
    assert isinstance(agent.rounds, GraphRound)
    assert [int(layer.counter.rows) for layer in layers] == [32, 32]


def test_a_declined_update_changes_no_statistics():
    agent, layers = counting("PPO", 2, jit_compile=False)
    agent.target_kl = 0.01
    rollouts = rl.RolloutDataset(around_5(NEXT_STEP), 16, 1, None, seed=0)
    rollouts.bind(agent)
    samples = rollouts.prepare(rollouts.collect())["samples"]
    before = weights_of(agent)
    agent.train_on_batch({**samples, "log_prob": samples["log_prob"] + 1.0})
    assert_equal_weights(weights_of(agent), before)
    assert int(layers[0].counter.rows) == 32


# Refused by name.


def test_for_env_refuses_batch_normalization_on_policy():
    for name in ("PPO", "APPO", "A2C", "REINFORCE"):
        with pytest.raises(ValueError, match=r"'none' or 'layer' or.*'batch'"):
            getattr(rl, name).for_env("CartPole-v1", normalization="batch")
    agent = rl.PQN.for_env("CartPole-v1", normalization="batch")
    assert counting_layers(agent)


@pytest.mark.parametrize("name", ["DQN", "CQL"])
def test_layers_that_would_count_other_rows_are_refused(name):
    memory = keras.layers.LSTMCell(4) if name == "DQN" else None
    env = "CartPole-v1" if name == "DQN" else "Pendulum-v1"
    with pytest.raises(ValueError, match=r"without BatchN.*normalization'"):
        getattr(rl, name).for_env(env, normalization="batch", memory=memory)


# Ratios of probabilities.


def ppo_of(layer, **settings):
    """Returns PPO with such layers, and rollouts."""

    def network_of(units):
        hidden = [keras.layers.Dense(8), *LAYERS[layer][1](8)]
        return keras.Sequential(
            [keras.Input((2,)), *hidden, keras.layers.Dense(units)]
        )

    agent = rl.PPO(network_of(2), network_of(1), seed=0, **settings)
    agent.compile(keras.optimizers.SGD(0.0), jit_compile=False)
    env = around_5(AutoresetMode.SAME_STEP)
    return agent, rl.RolloutDataset(env, 16, 1, None, seed=0)


@pytest.mark.parametrize("layer", BY_MODE)
def test_ppo_names_layers_with_which_ratios_do_not_begin_at_1(layer):
    agent, rollouts = ppo_of(layer)
    [named] = mode_layers(agent.actor)
    with pytest.warns(UserWarning, match=f"ratios begin at 1.*{named.name}"):
        agent.fit(rollouts, verbose=0)


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("layer", ["LayerNormalization", "BatchNormalization"])
def test_ratios_begin_at_1_with_other_layers(layer):
    agent, rollouts = ppo_of(layer)
    for each in counting_layers(agent):
        each.trainable = False
    history = agent.fit(rollouts, verbose=0).history
    assert history["approx_kl"][0] == pytest.approx(0.0, abs=1e-10)


def test_only_these_layers_depend_on_the_mode():
    drawing = {"GaussianDropout", "AlphaDropout", "LSTM with dropout"}
    drawing.add("MultiHeadAttention with dropout")
    for layer in LAYERS:
        found = bool(mode_layers(network(layer, 3)))
        assert found == (layer in {*BY_MODE, *drawing})


def test_rounds_that_target_kl_skips_warn_once():
    agent, rollouts = ppo_of("Dropout", target_kl=1e-9)
    with pytest.warns(UserWarning, match="target_kl=1e-09") as told:
        agent.fit(rollouts, epochs=3, verbose=0)
    texts = [str(each.message) for each in told]
    assert int(agent.optimizer.iterations.numpy()) == 0
    assert len([each for each in texts if "target_kl=1e-09" in each]) == 1
