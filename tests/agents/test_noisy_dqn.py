"""DQN with noisy layers explores by their noise."""

import keras
import numpy as np
import pytest
from keras import ops

import keras_rl2 as rl
from keras_rl2.layers import NoisyDense
from support.agents import EVERY_AGENT
from support.agents import assert_equal_agents
from support.agents import assert_equal_weights
from support.agents import make_agent
from support.agents import make_eager_agent
from support.agents import make_env
from support.agents import make_replay
from support.agents import weights_of
from support.errors import raises

DQN = EVERY_AGENT["DQN"]
RAINBOW = {"dueling": True, "atoms": 5, "distributional": "categorical"}
OBSERVATION = np.linspace(-1.0, 1.0, 3, dtype=np.float32)


@pytest.fixture(scope="module")
def agent():
    return make_eager_agent(DQN, make_env(), noisy=True, double=True)


def test_sampled_actions_differ_and_greedy_ones_do_not(agent):
    same = np.tile(OBSERVATION, (64, 1))
    drawn, greedy = agent.act(same), agent.act(same, deterministic=True)
    assert len({*drawn.tolist()}) > 1 == len({*greedy.tolist()})
    assert agent.exploration_logs() == {"epsilon": 0.0}


def test_noise_gives_the_same_action_each_time(agent):
    noise, _ = agent.noise.draw(np.random.default_rng(0), (5,))
    assert noise.shape == (5, agent.noise.size)
    # 3 + 8 and 8 + 3 numbers, after one for each of 3 actions
    assert agent.noise.size == 3 + 22
    assert [part["size"] for part in agent.noise.parts] == [3, 22]
    assert not noise[:, :3].any()
    same = np.tile(OBSERVATION, (5, 1))
    one, other = (agent.sample_action(same, noise) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_epsilon_may_be_added():
    agent = make_agent(DQN, make_env(), noisy=True, epsilon=1.0)
    noise, _ = agent.noise.draw(np.random.default_rng(0), (9,))
    assert ((noise[:, :3] > 1.0).sum(axis=1) == 1).all()


def test_networks_of_an_update_have_noise_of_their_own(monkeypatch):
    agent = make_eager_agent(DQN, make_env(), noisy=True, double=True)
    found = []
    run = agent.outputs_of

    def recorded(network, encoded, training=False):
        found.append(run(network, 0.0 * encoded + 1.0, training).numpy())
        return ops.convert_to_tensor(found[-1])

    monkeypatch.setattr(agent, "outputs_of", recorded)
    batch = {
        "observation": np.ones((2, 3), np.float32),
        "next_observation": np.ones((2, 3), np.float32),
        "action": np.zeros(2, np.int64),
        "reward": np.zeros(2, np.float32),
        "discount": np.ones(2, np.float32),
        "weight": np.ones(2, np.float32),
    }
    batch = {key: ops.convert_to_tensor(each) for key, each in batch.items()}
    for _ in range(2):
        agent._terms(batch)
    for each in found:
        # All rows of a minibatch have the same noise.
        np.testing.assert_allclose(each[0], each[1], rtol=1e-5)
    online, target, choosing, *again = (each[0] for each in found)
    assert (online != target).all()
    assert (choosing != target).all()
    assert (online != choosing).all()
    # The noise depends on seed and number of the update alone.
    np.testing.assert_array_equal(again, [online, target, choosing])
    agent.updates.assign_add(1)
    agent._terms(batch)
    assert (found[-3][0] != online).all()


def test_a_trained_agent_is_saved(tmp_path):
    agent = make_eager_agent(DQN, make_env(), noisy=True)
    before = weights_of(agent)
    agent.fit(make_replay(make_env()), epochs=1, verbose=0)
    for old, new in zip(before, weights_of(agent), strict=True):
        assert (old != new).any()
    agent.save(tmp_path / "agent.keras")
    loaded = keras.models.load_model(tmp_path / "agent.keras")
    assert_equal_weights(loaded, agent)
    assert loaded.noisy
    assert loaded.epsilon == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["act_discrete", "observe_image"])
def test_a_training_repeats(pair):
    def trained():
        agent = make_agent(DQN, make_env(pair), noisy=True, **RAINBOW)
        agent.fit(make_replay(make_env(pair)), epochs=2, verbose=0)
        return agent

    agent = trained()
    assert_equal_agents(agent, trained())
    dense = [
        layer
        for layer in agent.q_network.layers
        if isinstance(layer, keras.layers.Dense)
    ]
    # Two hidden layers, or those after convolutions, and two outputs.
    assert [type(layer) for layer in dense] == [NoisyDense] * 4


def test_noise_without_its_layers_is_refused():
    plain = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    noisy = keras.Sequential([keras.Input((4,)), NoisyDense(2)])
    spaces = {
        name: getattr(rl.envs.as_vector_env("CartPole-v1"), name)
        for name in ("observation_space", "action_space")
    }
    for network, flag in ((plain, True), (noisy, False)):
        with raises("`NoisyDense` layers with `noisy=True` alone", "memory"):
            rl.DQN(network, noisy=flag, **spaces)
    with raises("and no memory then", "MemoryNetwork"):
        cell = keras.layers.LSTMCell(4)
        rl.DQN.for_env("CartPole-v1", memory=cell, noisy=True)
